"""Wilcoxon's signed-rank test: whether our method differs from others over data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import wilcoxon

from nouncut.errors import ParameterError
from nouncut.paper.published import DEFAULT_BACKBONE, published_values
from nouncut.paper.tables.score_table import AVERAGE, Column, Table, build_table

# The smallest two-sided p-value of n pairs is 2 / 2^n: below 0.05 from six pairs on.
MIN_DATASETS = 6
# The paper's table of p-values, which has one value for TAC.
PRINTED_P_VALUES = {
    "TAC (KMeans)": 0.0078,
    "TAC (SC)": 0.0078,
    "SIC": 0.0039,
    "CLIP (KMeans)": 0.0078,
}


class Comparison(NamedTuple):
    """The test of our method against another."""

    title: str
    p_value: float
    n_datasets: int


class Significance(NamedTuple):
    """P-values of our method against another: printed in the paper, from its NMI, and measured."""

    title: str
    printed: float | None
    from_published: float
    measured: float | None
    n_measured: int


def signed_rank(ours: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided p-value that paired values differ."""
    differences = np.subtract(ours, other)
    differences = differences[differences != 0]
    return float(wilcoxon(differences).pvalue) if len(differences) else 1.0


def compare_methods(table: Table, *, published: bool = False) -> list[Comparison]:
    """Compare the NMI of our method with that of every other one: measured, or as published."""
    nmi = {
        row.row: [
            cell.published if published else cell.mean
            for cell in (row.cells[title, "NMI"] for title in table.datasets)
        ]
        for row in table.rows
    }
    ours = next((values for row, values in nmi.items() if row.method == "ours"), None)
    if ours is None:
        return []
    found = []
    for row, values in nmi.items():
        pairs = [
            (mine, theirs)
            for mine, theirs in zip(ours, values, strict=True)
            if mine is not None and theirs is not None
        ]
        if row.method not in (None, "ours") and len(pairs) > 1:
            p_value = signed_rank([mine for mine, _ in pairs], [theirs for _, theirs in pairs])
            found.append(Comparison(row.title, p_value, len(pairs)))
    return found


def significance_table(table: Table) -> list[Significance]:
    """Return the p-values of a table's methods; the paper's NMI is that of its own data sets."""
    names = dict.fromkeys(
        value.dataset for value in published_values() if value.table in table.layout.published
    )
    columns = [Column(name, name) for name in names if name != AVERAGE.title]
    paper = build_table(table.layout, DEFAULT_BACKBONE, columns, {})
    measured = {one.title: one for one in compare_methods(table)}
    found = []
    for title, from_published, _ in compare_methods(paper, published=True):
        _, p_value, n_datasets = measured.get(title, (title, None, 0))
        printed = PRINTED_P_VALUES.get(title)
        found.append(Significance(title, printed, from_published, p_value, n_datasets))
    if not found:
        raise ParameterError("`methods` needs ours and another method of the table wilcoxon.")
    return found
