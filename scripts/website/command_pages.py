"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

import typer

from nouncut.cli.app import app


class Command(NamedTuple):
    """A command, such as ``nouncut edit merge``, and how it is called."""

    click: Any
    usage: str


def commands() -> dict[str, Command]:
    """Return all commands by their full names."""
    return dict(_walk("nouncut", "nouncut", typer.main.get_command(app)))


def _walk(name: str, usage: str, command: Any) -> Iterator[tuple[str, Command]]:
    usage = " ".join([usage, *(_argument(one) for one in command.params if _is_argument(one))])
    if name != "nouncut":
        yield name, Command(command, usage)
    for word, below in getattr(command, "commands", {}).items():
        yield from _walk(f"{name} {word}", f"{usage} {word}", below)


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _argument(argument: Any) -> str:
    metavar = argument.metavar or argument.name.upper()
    return metavar if argument.required else f"[{metavar}]"


def option_names(command: Command) -> set[str]:
    """Return the options that a command knows."""
    options = [one for one in command.click.params if not _is_argument(one)]
    return {"-h", "--help"}.union(*((*one.opts, *one.secondary_opts) for one in options))


def describe_commands() -> str:
    """Return a section for every command in Markdown."""
    return "\n\n".join(_describe(name, command) for name, command in commands().items())


def _describe(name: str, command: Command) -> str:
    context = command.click.context_class(command.click, info_name=name)
    level = "###" if name.count(" ") > 1 else "##"
    rows = [one.get_help_record(context) for one in command.click.params]
    below = getattr(command.click, "commands", None)
    parts = [
        f"{level} {name}",
        *_paragraphs(command.click.help or ""),
        f"```text\n{command.usage}{' COMMAND' if below else ''}\n```",
    ]
    parts += [f"`{_name(left)}`\n:   {_meaning(right)}" for left, right in filter(None, rows)]
    return "\n\n".join(parts)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.replace("\f", "").strip().split("\n\n"):
        words = " ".join(paragraph.split())
        if words.startswith(("Examples: ", "Example: ")):
            examples = words.split(": ", 1)[1].split("; ")
            yield "Examples:\n\n" + "\n".join(f"- `{example}`" for example in examples)
        elif words:
            yield escape(words, quote=False)


def _name(text: str) -> str:
    # Types such as <path> say no more than RUN and IMAGE.
    return re.sub(r"(?<=\S) <(list\[)?(str|path|Path)(\])?>$", "", text)


def _meaning(text: str) -> str:
    words = escape(" ".join(text.split()), quote=False)
    return re.sub(r" \[(default: |x)([^\]]*)\]", r" (\1\2)", words).replace(" [required]", "")
