"""New images that are of no known kind, and new groups that they could make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from nouncut.method.familiarity import N_NEAREST, SHARE_UNFAMILIAR, familiarity

# All pairs of more images would take gigabytes.
_MOST_IMAGES = 5000

_Rows = NDArray[np.intp]


def find_unfamiliar(
    looks: NDArray[Any], known: _Rows, new: _Rows, least: float, n_threads: int = 1
) -> _Rows:
    """Return the `new` images that look like none of the `known` ones."""
    if not len(known) or not len(new):
        return new
    return new[familiarity(looks[known], looks[new], n_threads=n_threads) < least]


def propose_groups(looks: NDArray[Any], unfamiliar: _Rows, loosest: float) -> list[_Rows]:
    """Return groups of unfamiliar images, the largest first.

    They are joined by average linkage as long as they are as alike as the images of the loosest
    group that the run has. At least five make a group: images are familiar by their five nearest.
    """
    if len(unfamiliar) < N_NEAREST:
        return []
    pool = unfamiliar[:_MOST_IMAGES]
    distances = 1 - looks[pool].astype(np.float64) @ looks[pool].T
    np.fill_diagonal(distances, 0)
    joined = linkage(squareform(distances, checks=False), "average")
    labels = fcluster(joined, 1 - loosest, "distance")
    groups = [pool[labels == group] for group in np.unique(labels)]
    return sorted((one for one in groups if len(one) >= N_NEAREST), key=len, reverse=True)


def loosest_group(looks: NDArray[Any], labels: _Rows) -> float:
    """Return the mean cosine between the images of a group that 19 of 20 groups reach."""
    found = []
    for group in np.unique(labels[labels >= 0]):
        rows = looks[labels == group].astype(np.float64)
        if (n := len(rows)) >= N_NEAREST:
            total = rows.sum(axis=0)
            found.append((total @ total - np.sum(rows * rows)) / (n * (n - 1)))
    return float(np.quantile(found, SHARE_UNFAMILIAR)) if found else 1.0


def take_along(
    looks: NDArray[Any], groups: Sequence[_Rows], others: _Rows, known: _Rows, labels: _Rows
) -> list[_Rows]:
    """Add to new groups the `others` that look more like them than like their own group.

    Likeness is the mean cosine to the five nearest images, of those of the own group to `known`
    ones.
    """
    if not len(others):
        return list(groups)
    own = np.full(len(others), -np.inf)
    for group in np.unique(labels[others]):
        members, here = known[labels[known] == group], labels[others] == group
        if len(members):
            own[here] = familiarity(looks[members], looks[others[here]])
    likeness = np.stack([own, *(familiarity(looks[group], looks[others]) for group in groups)])
    chosen = likeness.argmax(axis=0)
    return [
        np.union1d(group, others[chosen == number]) for number, group in enumerate(groups, start=1)
    ]


def why_recluster(n_unfamiliar: int, n_placed: int, n_fitted: int) -> str:
    """Return why clustering again is worthwhile; an empty text if it is not.

    Of images of known kinds, 5 % are unfamiliar. Twice as many, and three standard deviations
    more, are no chance. Groups that were found without a third of the images may be wrong ones.
    """
    usual = SHARE_UNFAMILIAR * n_placed
    limit = 2 * usual + 3 * math.sqrt(usual * (1 - SHARE_UNFAMILIAR))
    if n_unfamiliar >= N_NEAREST and n_unfamiliar > limit:
        return (
            f"{n_unfamiliar:,} of the {n_placed:,} images that were added fit no group, and about "
            f"{math.ceil(usual):,} would be usual"
        )
    if 2 * n_placed > n_fitted:
        return f"the groups were found without {n_placed:,} of {n_placed + n_fitted:,} images"
    return ""
