"""Texts of the pages, from one catalogue per language.

Python writes them in English, with their keys; ``texts.js`` says them in the reader's language and
shows numbers and dates as that reader writes them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape

SOURCE = "en"

_PLACEHOLDER = re.compile(r"\{(\w+)\}")

# A sentence with placeholders, or one for each plural form of `n`.
Catalogue = Mapping[str, str | Mapping[str, str]]


@cache
def catalogues() -> dict[str, Catalogue]:
    """Return the catalogues of all languages; English, which is complete, is the first."""
    folder = files("nouncut.report").joinpath("texts")
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".json"))
    found = {
        name.removesuffix(".json"): json.loads(folder.joinpath(name).read_text("utf-8"))
        for name in names
    }
    return {SOURCE: found[SOURCE]} | found


class Said(str):
    """A text of the catalogue: a plain English string that HTML marks with its key and values."""

    key: str
    values: dict[str, Any]

    def __new__(cls, key: str, values: dict[str, Any]) -> Said:
        """Return the English text, in which Markup is without its tags."""
        plain = {name: _plain(value) for name, value in values.items()}
        made = super().__new__(cls, _sentence(key, values).format_map(plain))
        made.key, made.values = key, values
        return made

    @property
    def marks(self) -> dict[str, str]:
        """The attributes that let the page say the text again."""
        values = {name: one for name, one in self.values.items() if not _is_part(one)}
        return {"data-text": self.key} | ({"data-values": _json(values)} if values else {})

    def __html__(self) -> str:
        """Return the text as an element; values that are elements themselves stay elements."""
        pieces = _PLACEHOLDER.split(_sentence(self.key, self.values))
        inside = Markup().join(
            self._html_of(piece) if place % 2 else piece for place, piece in enumerate(pieces)
        )
        return f"<span{attributes(self.marks)}>{inside}</span>"

    def _html_of(self, name: str) -> str:
        value = self.values[name]
        if _is_part(value):
            return Markup('<span data-part="{}">{}</span>').format(name, value)
        return _plain(value)


class Number(str):
    """A number: an English string that HTML marks with its value."""

    value: str

    def __new__(cls, value: float, digits: int = 0) -> Number:
        """Return the number with so many digits after the point."""
        made = super().__new__(cls, f"{value:,.{digits}f}")
        made.value = f"{value:.{digits}f}"
        return made

    @property
    def marks(self) -> dict[str, str]:
        """The attributes that let the page show the number again."""
        return {"data-number": self.value}

    def __html__(self) -> str:
        """Return the number as an element."""
        return f'<data value="{self.value}">{self}</data>'


class Moment(str):
    """A date with its time: an English string that HTML marks with its value."""

    value: str

    def __new__(cls, moment: datetime) -> Moment:
        """Return the moment as people write it."""
        made = super().__new__(cls, f"{moment.day} {moment:%B %Y, %H:%M %Z}".strip())
        made.value = moment.isoformat()
        return made

    def __html__(self) -> str:
        """Return the moment as an element."""
        return f'<time datetime="{self.value}">{self}</time>'


def say(key: str, **values: Any) -> Said:
    """Return a text of the catalogue; `n` decides between singular and plural."""
    return Said(key, values)


def said_in(**texts: Said) -> Markup:
    """Return attributes of an element, such as `title` and `aria_label`, each with its text."""
    found: dict[str, str] = {}
    for name, one in ((name.replace("_", "-"), one) for name, one in texts.items()):
        marks = one.marks
        found |= {name: one, f"data-text-{name}": marks["data-text"]}
        if "data-values" in marks:
            found[f"data-values-{name}"] = marks["data-values"]
    return attributes(found)


def attributes(found: Mapping[str, str]) -> Markup:
    """Return attributes as HTML, with a space before each."""
    return Markup().join(
        Markup(' {}="{}"').format(name, str.__str__(value)) for name, value in found.items()
    )


def percent(share: float | None) -> Markup:
    """Return a share in percent; 0 % and 100 % only for exactly none and all."""
    if share is None or not math.isfinite(share):
        return escape(say("unknown"))
    shown = say("percent", number=round(100 * share))
    if 0 < share < 0.005:
        shown = say("percent.under", percent=say("percent", number=1))
    elif 0.995 <= share < 1:
        shown = say("percent.over", percent=say("percent", number=99))
    return Markup('<data class="percent" value="{}">{}</data>').format(share, str.__str__(shown))


def _sentence(key: str, values: Mapping[str, Any]) -> str:
    found = catalogues()[SOURCE][key]
    if isinstance(found, str):
        return found
    return found["one" if values["n"] == 1 else "other"]


def _is_part(value: Any) -> bool:
    return isinstance(value, Markup)


def _plain(value: Any) -> str:
    if isinstance(value, Markup):
        return str(value.striptags())
    return f"{value:,}" if isinstance(value, int) else str.__str__(value)


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(_values(values), ensure_ascii=False, separators=(",", ":"))


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON knows them; texts and numbers among them keep their meaning."""
    found = dict(values)
    for name, value in values.items():
        if isinstance(value, Said):
            found[name] = {"text": value.key, "values": _values(value.values)}
        elif isinstance(value, Number):
            found[name] = {"number": value.value}
    return found
