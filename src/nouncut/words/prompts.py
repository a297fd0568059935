"""Prompts: the sentences that a noun is put into before it is encoded."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from nouncut.words.text_files import read_lines

PROMPTS = (
    "itap of a {}.",
    "a bad photo of the {}.",
    "a origami {}.",
    "a photo of the large {}.",
    "a {} in a video game.",
    "art of the {}.",
    "a photo of the small {}.",
)
"""The seven prompts of the paper."""

_FIELD = "{}"


def check_templates(templates: Iterable[str]) -> list[str]:
    """Check that every template has exactly one place for the noun."""
    if isinstance(templates, str):
        raise TypeError(f"templates must be a list of texts, not a text: pass [{templates!r}].")
    checked = [_check(template, f"templates[{i}]") for i, template in enumerate(templates)]
    if not checked:
        raise ValueError('templates is empty. Pass at least one, such as "a photo of a {}.".')
    return checked


def read_templates(path: str | PathLike[str]) -> list[str]:
    r"""Read templates from a text file."""
    path = Path(path)
    templates = [
        _check(line.text.strip(), f"{path}, line {line.number}: a template")
        for line in read_lines(path)
    ]
    if not templates:
        raise ValueError(f"{path} has no templates. Write one per line: a photo of a {{}}.")
    return templates


def fill_template(template: str, nouns: Iterable[str]) -> list[str]:
    """Put every noun into a template."""
    before, after = _check(template, "template").split(_FIELD)
    return [before + noun + after for noun in nouns]


def _check(template: object, where: str) -> str:
    if not isinstance(template, str):
        raise TypeError(f"{where} must be a text with {{}} in it; got {template!r}.")
    parts = template.split(_FIELD)
    if len(parts) != 2 or "{" in "".join(parts) or "}" in "".join(parts):
        raise ValueError(
            f"{where} must hold {{}} once, where the noun goes, and no other brace; "
            f"got {template!r}."
        )
    return template
