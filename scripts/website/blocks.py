"""The code blocks of the documentation: which ones run, and which are marked as not to run.

``bash`` and ``python`` blocks of the pages in docs/ run when the site is built. A comment on the
line above a block, ``<!-- not run: why -->``, says that it does not. A comment that starts with
``<!-- run`` holds Python that runs unseen; what it prints becomes part of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CODE = ("bash", "python")
# Contents of files, outputs and citations.
DATA = ("bibtex", "text")

_PARTS = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"(?P<fence>`{3,})(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=fence)[ ]*$"
    r"|^<!-- run\n(?P<hidden>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A code block of a page, from `start` to `end` of its text."""

    language: str
    code: str
    reason: str | None
    is_hidden: bool
    start: int
    end: int

    @property
    def runs(self) -> bool:
        """Whether the block runs when the site is built."""
        return self.is_hidden or (self.language in CODE and self.reason is None)


def find_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page in their order."""
    for match in _PARTS.finditer(text):
        hidden = match["hidden"]
        yield Block(
            language="python" if hidden is not None else match["language"].strip(),
            code=hidden if hidden is not None else match["code"],
            reason=match["reason"],
            is_hidden=hidden is not None,
            start=match.start(),
            end=match.end(),
        )


def without_blocks(text: str) -> str:
    """Return a page without its code blocks."""
    return _PARTS.sub("", text)


def with_outputs(text: str, outputs: Sequence[str]) -> str:
    """Return a page in which the output of every block that runs follows it."""
    parts, position, left = [], 0, iter(outputs)
    for block in find_blocks(text):
        shown = text[block.start : block.end]
        if block.is_hidden:
            shown = next(left)
        elif block.runs:
            output = next(left)
            shown += f"\n\n``` {{ .text .output }}\n{output}\n```" if output else ""
        elif block.reason is not None:
            shown = shown.split("\n", 1)[1]
        parts += [text[position : block.start], shown]
        position = block.end
    return "".join([*parts, text[position:]])
