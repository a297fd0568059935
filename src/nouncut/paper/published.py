"""The values printed in the paper, as data: NMI, ACC and ARI in per cent."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

DEFAULT_BACKBONE = "ViT-B/32"
"""The model that most of the paper's values belong to."""


class PublishedValue(NamedTuple):
    """One number of the paper."""

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
    table: str | Sequence[str],
    method: str,
    dataset: str,
    metric: str,
    *,
    section: str = "",
    backbone: str = DEFAULT_BACKBONE,
) -> float | None:
    """Look a value of the paper up."""
    for one in (table,) if isinstance(table, str) else table:
        value = _by_place().get((one, dataset, backbone, section, method, metric))
        if value is not None:
            return value
    return None


@lru_cache(maxsize=1)
def _by_place() -> dict[tuple[str, ...], float]:
    return {value[:-1]: value.value for value in published_values()}
