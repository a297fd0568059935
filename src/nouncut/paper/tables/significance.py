"""Wilcoxon's signed-rank test: whether our method differs from others over data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import wilcoxon

from nouncut.paper.tables.score_table import AVERAGE, Table

# The smallest two-sided p-value of n pairs is 2 / 2^n: below 0.05 from six pairs on.
MIN_DATASETS = 6


class Comparison(NamedTuple):
    """The test of our method against another."""

    title: str
    p_value: float
    n_datasets: int


def signed_rank(ours: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided p-value that paired values differ."""
    differences = np.subtract(ours, other)
    differences = differences[differences != 0]
    return float(wilcoxon(differences).pvalue) if len(differences) else 1.0


def compare_methods(table: Table) -> list[Comparison]:
    """Compare the NMI of our method with that of every other measured one."""
    datasets = [dataset for dataset in table.datasets if dataset != AVERAGE]
    means = {
        row.row: [row.cells[dataset, "NMI"].mean for dataset in datasets] for row in table.rows
    }
    ours = next((values for row, values in means.items() if row.method == "ours"), None)
    if ours is None:
        return []
    found = []
    for row, values in means.items():
        pairs = [
            (mine, theirs)
            for mine, theirs in zip(ours, values, strict=True)
            if mine is not None and theirs is not None
        ]
        if row.method not in (None, "ours") and len(pairs) > 1:
            p_value = signed_rank([mine for mine, _ in pairs], [theirs for _, theirs in pairs])
            found.append(Comparison(row.title, p_value, len(pairs)))
    return found
