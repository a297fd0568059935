"""Prompts: templates with ``{}`` for the noun, which make the sentences that are encoded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nouncut.compute.files import AnyPath
from nouncut.errors import InputError, ParameterError, printable_path
from nouncut.words.text_files import line_error, read_lines

# Characters; CLIP reads 77 tokens, about 300 characters, and ignores the rest.
MAX_TEMPLATE_LENGTH = 300

# The seven prompts of the paper.
PROMPTS = (
    "itap of a {}.",
    "a bad photo of the {}.",
    "a origami {}.",
    "a photo of the large {}.",
    "a {} in a video game.",
    "art of the {}.",
    "a photo of the small {}.",
)


def check_prompts(prompts: Iterable[str]) -> list[str]:
    """Return prompts as a list; raise unless each is short and has exactly one ``{}``."""
    if isinstance(prompts, str):
        raise ParameterError(f"`prompts` must be a list, not a text: pass [{prompts!r}].")
    checked = list(prompts)
    if not checked:
        raise ParameterError('`prompts` is empty. Pass at least one, such as "a photo of a {}.".')
    for template in checked:
        if problem := _problem(template):
            raise ParameterError(f"`prompts`: {problem}")
    return checked


def read_prompts(path: AnyPath) -> list[str]:
    """Read templates from a text file, one per line; blank lines and # comments are skipped."""
    path = Path(path)
    templates = []
    for number, text in read_lines(path):
        if problem := _problem(text.strip()):
            raise line_error(path, number, problem)
        templates.append(text.strip())
    if not templates:
        raise InputError(
            f"{printable_path(path)} has no templates. Write one per line, such as: "
            "a photo of a {}."
        )
    return templates


def fill_template(template: str, nouns: Iterable[str]) -> list[str]:
    """Put each noun into a template."""
    if problem := _problem(template):
        raise ParameterError(problem)
    before, after = template.split("{}")
    return [before + noun + after for noun in nouns]


def _problem(template: object) -> str:
    """Return what is wrong with a template, or an empty text."""
    if isinstance(template, str) and len(template) > MAX_TEMPLATE_LENGTH:
        return (
            f"the template {template[:40]!r}... has {len(template):,} characters, but at most "
            f"{MAX_TEMPLATE_LENGTH} are allowed. Shorten it."
        )
    rest = template.split("{}") if isinstance(template, str) else []
    if len(rest) == 2 and not set("{}") & set("".join(rest)):
        return ""
    return (
        f"{template!r} is not a template. Write {{}} exactly once, where the noun goes, and no "
        "other braces."
    )
