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
    """Check that every template has exactly one place for the noun.

    Parameters
    ----------
    templates : iterable of str
        Sentences with ``{}`` where the noun goes.

    Returns
    -------
    list of str
        The templates.

    Raises
    ------
    TypeError
        If they are one text, or not texts.
    ValueError
        If there is none, or one has no ``{}``, several, or any other brace.

    Examples
    --------
    >>> from nouncut.words.prompts import check_templates
    >>> check_templates(["a photo of a {}.", "a photo of a dog."])
    Traceback (most recent call last):
    ...
    ValueError: templates[1] must hold {} once, where the noun goes, and no other brace; got
    'a photo of a dog.'.
    """
    if isinstance(templates, str):
        raise TypeError(f"templates must be a list of texts, not a text: pass [{templates!r}].")
    checked = [_check(template, f"templates[{i}]") for i, template in enumerate(templates)]
    if not checked:
        raise ValueError('templates is empty. Pass at least one, such as "a photo of a {}.".')
    return checked


def read_templates(path: str | PathLike[str]) -> list[str]:
    r"""Read templates from a text file.

    Parameters
    ----------
    path : path-like
        A UTF-8 file with one template per line. Blank lines and lines that start with ``#`` are
        skipped.

    Returns
    -------
    list of str
        The templates, in the order of the file.

    Raises
    ------
    ValueError
        If there is none, or one fails `check_templates`; the message names the file and the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from nouncut.words.prompts import read_templates
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "prompts.txt")
    ...     _ = path.write_text("# colours\na red {}.\na blue {}.\n")
    ...     read_templates(path)
    ['a red {}.', 'a blue {}.']
    """
    path = Path(path)
    templates = [
        _check(line.text.strip(), f"{path}, line {line.number}: a template")
        for line in read_lines(path)
    ]
    if not templates:
        raise ValueError(f"{path} has no templates. Write one per line: a photo of a {{}}.")
    return templates


def fill_template(template: str, nouns: Iterable[str]) -> list[str]:
    """Put every noun into a template.

    Parameters
    ----------
    template : str
        A sentence with ``{}`` where the noun goes.
    nouns : iterable of str
        The nouns, inserted as they are, braces included.

    Returns
    -------
    list of str
        One sentence per noun.

    Examples
    --------
    >>> from nouncut.words.prompts import fill_template
    >>> fill_template("itap of a {}.", ["dog", "polar bear"])
    ['itap of a dog.', 'itap of a polar bear.']
    """
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
