"""Formulas of a page as MathML, which browsers draw without scripts and without the network."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r"\$\$(?P<display>.+?)\$\$|(?<![\\$\w`])\$(?P<inline>[^$\n`]+?)\$(?![\w$])", re.DOTALL
)
_TOKEN = "FORMULA-{}-HERE"


def take_formulas(text: str) -> tuple[str, list[str]]:
    """Return a page with a token for every formula, and the formulas as MathML.

    Markdown would read underscores and stars of a formula as emphasis.
    """
    formulas: list[str] = []

    def replace(match: re.Match[str]) -> str:
        display = "block" if match["display"] else "inline"
        formulas.append(convert((match["display"] or match["inline"]).strip(), display=display))
        return _TOKEN.format(len(formulas) - 1)

    return _FORMULA.sub(replace, text), formulas


def put_formulas(html: str, formulas: list[str]) -> str:
    """Put the formulas in the place of their tokens."""
    for number, formula in enumerate(formulas):
        html = html.replace(_TOKEN.format(number), formula)
    return html
