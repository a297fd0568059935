"""Sub-groups: the part of the kept graph that belongs to one cluster, cut again."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.errors import InputError, ParameterError
from nouncut.method.estimator import NTKSpectralClustering

if TYPE_CHECKING:
    from nouncut.runs.run import Run

Parts = int | Literal["auto"]


def split_cluster(run: Run, cluster: int, parts: Parts = "auto") -> list[NDArray[np.intp]]:
    """Return the rows of the parts of a cluster, the largest part first."""
    rows = np.flatnonzero(run.labels == cluster)
    return [rows[labels] for labels in split_rows(run.graph(), rows, parts)]


def split_rows(
    graph: csr_array, rows: NDArray[np.intp], parts: Parts = "auto"
) -> list[NDArray[np.intp]]:
    """Return positions in `rows` of the parts into which a graph divides them, largest first."""
    if parts != "auto" and (type(parts) is not int or parts < 2):
        raise ParameterError("`parts` must be at least 2.")
    if len(rows) < (2 if parts == "auto" else parts):
        wanted = "two" if parts == "auto" else parts
        raise InputError(f"A group of {len(rows):,} images has no {wanted} parts.")
    inside = csr_array(graph[rows][:, rows])
    model = NTKSpectralClustering(parts, affinity="precomputed", random_state=0)
    with warnings.catch_warnings():
        # Images without edges inside the cluster are placed anyway.
        warnings.simplefilter("ignore", UserWarning)
        labels = model.fit(inside).labels_
    found = [np.flatnonzero(labels == part) for part in range(int(labels.max()) + 1)]
    found = sorted(filter(len, found), key=len, reverse=True)
    if len(found) < 2:
        raise InputError(
            "The group does not fall into parts by itself. Set `parts` to a number of parts."
        )
    return found
