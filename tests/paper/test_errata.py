"""The errors in the paper that docs/paper.md lists, recomputed from its printed values."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import wilcoxon

from nouncut.paper.published import published_values

EIGHT_SETS = ("tab:classic", "tab:complex")
WRONG_AVERAGES = {
    ("tab:complex", "CLIP (KMeans)", "ACC"): (45.6, 46.6),
    ("tab:complex", "GradNorm", "ARI"): (41.7, 42.2),
    ("tab:laion_clip_main", "TAC (SC)", "ARI"): (62.8, 63.8),
}


def by_dataset():
    found = defaultdict(dict)
    for one in published_values():
        key = one.table, one.section, one.method, one.metric, one.backbone
        found[key][one.dataset] = one.value
    return found


def nmi(method):
    values = {
        dataset: value
        for (table, _, name, metric, _), row in by_dataset().items()
        for dataset, value in row.items()
        if table in EIGHT_SETS and name == method and metric == "NMI" and dataset != "Average"
    }
    assert len(values) == 8
    return [values[dataset] for dataset in sorted(values)]


@pytest.mark.parametrize(
    ("method", "printed", "right"),
    [
        ("TAC (KMeans)", 0.0078, 0.0078),
        ("CLIP (KMeans)", 0.0078, 0.0078),
        ("SIC", 0.0039, 0.0391),
        ("GradNorm", None, 0.4688),
    ],
)
def test_p_values(method, printed, right):
    found = wilcoxon(nmi("Ours"), nmi(method)).pvalue
    assert found == pytest.approx(right, abs=5e-5)
    assert (printed == right) == (method not in ("SIC", "GradNorm"))


def test_averages_that_are_not_the_mean_of_their_row():
    wrong, last_digit = {}, 0
    for (table, _, method, metric, _), row in by_dataset().items():
        if "Average" in row:
            mean = np.mean([value for name, value in row.items() if name != "Average"])
            gap = abs(mean - row["Average"])
            if gap > 0.1:
                wrong[table, method, metric] = row["Average"], round(float(mean), 1)
            last_digit += 0.0501 < gap <= 0.1
    assert wrong == WRONG_AVERAGES
    assert last_digit == 4
