"""The values printed in the paper, and the names that its tables and figures have here."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

TableName = Literal[
    "classic",
    "challenging",
    "kernels",
    "rad",
    "prompts",
    "encoders",
    "openclip",
    "fine",
    "shift",
    "leak",
    "wilcoxon",
    "time",
]
ParameterName = Literal["tau", "q", "mu", "lambda"]
ShiftNouns = Literal["train", "own"]
"""Whose images choose the nouns of ImageNet's variants: ImageNet's for training, or their own."""
PromptNouns = Literal["own", "all"]
"""Which prompts choose the nouns of a row with a single prompt."""
METRICS = ("NMI", "ACC", "ARI")
DEFAULT_BACKBONE = "ViT-B/32"
"""The model of most of the paper's values."""


class PublishedValue(NamedTuple):
    """One number of the paper, in per cent."""

    table: str
    dataset: str
    backbone: str
    section: str
    method: str
    metric: str
    value: float


@lru_cache(maxsize=1)
def published_values() -> tuple[PublishedValue, ...]:
    """Return all values of the paper's tables."""
    data = files("nouncut.paper").joinpath("data/tables.csv")
    rows = csv.reader(data.read_text("utf-8").splitlines()[1:])
    return tuple(
        PublishedValue(table, dataset, backbone, section, method, metric, float(value))
        for table, dataset, backbone, section, method, metric, value in rows
    )


def published_value(
    tables: Sequence[str],
    method: str,
    dataset: str,
    metric: str,
    *,
    section: str = "",
    backbone: str = DEFAULT_BACKBONE,
) -> float | None:
    """Look a value up in the first of several tables that has it."""
    for table in tables:
        value = _index().get((table, dataset, backbone, section, method, metric))
        if value is not None:
            return value
    return None


@lru_cache(maxsize=1)
def _index() -> dict[tuple[str, ...], float]:
    return {value[:-1]: value.value for value in published_values()}
