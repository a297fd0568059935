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
    """Our method against another.

    Parameters
    ----------
    title : str
        The other method.
    p_value : float
        Two-sided.
    n_datasets : int
        Pairs that were compared.
    """

    title: str
    p_value: float
    n_datasets: int


def signed_rank(ours: Sequence[float], other: Sequence[float]) -> float:
    """Test whether paired values differ.

    Parameters
    ----------
    ours, other : sequence of float
        One value per data set.

    Returns
    -------
    float
        Two-sided p-value of Wilcoxon's signed-rank test; pairs without a difference are left out.

    Examples
    --------
    >>> from nouncut.paper.tables.significance import signed_rank
    >>> round(signed_rank([92, 84, 63, 98, 82, 62, 83, 79], [90, 80, 60, 95, 75, 60, 81, 78]), 4)
    0.0078
    """
    differences = np.subtract(ours, other)
    differences = differences[differences != 0]
    return float(wilcoxon(differences).pvalue) if len(differences) else 1.0


def compare_methods(table: Table, metric: str = "NMI", ours: str = "ours") -> list[Comparison]:
    """Compare our method with every other one that was measured.

    Parameters
    ----------
    table : Table
        The numbers.
    metric : {"NMI", "ACC", "ARI"}, default="NMI"
        The score; the paper tests NMI.
    ours : str, default="ours"
        The method to compare with the others.

    Returns
    -------
    list of Comparison
        In the order of rows; empty with fewer than two data sets.

    Examples
    --------
    >>> from nouncut.paper.tables.table import build_table
    >>> from nouncut.paper.tables.significance import compare_methods
    >>> from nouncut.paper.tables.layouts import table_layout
    >>> compare_methods(build_table(table_layout("rad"), "mini", ["CIFAR-10", "STL-10"], {}))
    []
    """
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
