"""Whether one method is better than another over data sets: Wilcoxon's signed-rank test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import wilcoxon

from nouncut.paper.tables.table import AVERAGE, Table

# The least two-sided p-value of n pairs is 2 / 2^n, which is below 0.05 from six on.
FEWEST_DATASETS = 6


class Comparison(NamedTuple):
    """Our method against another."""

    title: str
    p_value: float
    n_datasets: int


def signed_rank(ours: Sequence[float], other: Sequence[float]) -> float:
    """Test whether paired values differ."""
    differences = np.subtract(ours, other)
    differences = differences[differences != 0]
    return float(wilcoxon(differences).pvalue) if len(differences) else 1.0


def compare_methods(table: Table, metric: str = "NMI", ours: str = "ours") -> list[Comparison]:
    """Compare our method with every other one that was measured."""
    datasets = [dataset for dataset in table.datasets if dataset != AVERAGE]
    means = [
        (row.row, [row.cells[dataset, metric].mean for dataset in datasets]) for row in table.rows
    ]
    of_ours = next((values for row, values in means if row.method == ours), None)
    found = []
    for row, values in means:
        pairs = [
            (mine, theirs)
            for mine, theirs in zip(of_ours or [], values, strict=False)
            if mine is not None and theirs is not None
        ]
        if row.method not in (None, ours) and len(pairs) > 1:
            p_value = signed_rank([mine for mine, _ in pairs], [theirs for _, theirs in pairs])
            found.append(Comparison(row.title, p_value, len(pairs)))
    return found
