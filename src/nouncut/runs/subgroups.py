"""Sub-groups: the part of the kept graph that belongs to one cluster, cut again."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.errors import InputError, ParameterError
from nouncut.method.division import bisect, divide
from nouncut.method.estimator import NTKSpectralClustering

if TYPE_CHECKING:
    from nouncut.runs.run import Run

Parts = int | Literal["auto"]


def split_cluster(run: Run, cluster: int, parts: Parts = "auto") -> list[NDArray[np.intp]]:
    """Return the rows of the parts of a cluster, the largest part first.

    With "auto", parts are as separate as the computed clusters are: linked more weakly than half of
    the clusters are with the cluster that is nearest to them.
    """
    rows = run.groups.rows(cluster)
    if run.is_large:
        from nouncut.runs.sample import need_all_images

        need_all_images(run, "Splitting a group")
    if parts == "auto":
        found = divide_rows(run.graph(), rows, run.usual_link)
    else:
        found = cut_rows(run.graph(), rows, parts)
    return [rows[places] for places in found]


def divide_rows(
    graph: csr_array, rows: NDArray[np.intp], limit: float | None
) -> list[NDArray[np.intp]]:
    """Return positions in `rows` of the parts into which they fall, the largest first."""
    found = _parts(divide(_inside(graph, rows), limit))
    if len(found) < 2:
        raise InputError(
            "The group looks like one kind and was not divided: its parts are linked more strongly "
            "than the groups of this run are. Set `parts` to a number of parts to split it anyway."
        )
    return found


def cut_rows(graph: csr_array, rows: NDArray[np.intp], parts: int) -> list[NDArray[np.intp]]:
    """Return positions in `rows` of a given number of parts, the largest first."""
    if type(parts) is not int or parts < 2:
        raise ParameterError("`parts` must be at least 2.")
    if len(rows) < parts:
        raise InputError(f"A group of {len(rows):,} images has no {parts} parts.")
    halves = bisect(_inside(graph, rows)) if parts == 2 else None
    if halves is not None:
        return _parts(halves)
    model = NTKSpectralClustering(parts, affinity="precomputed", random_state=0)
    with warnings.catch_warnings():
        # Images without edges inside the cluster are placed anyway.
        warnings.simplefilter("ignore", UserWarning)
        found = _parts(model.fit(_inside(graph, rows)).labels_)
    if len(found) < 2:
        raise InputError("The group cannot be cut: its images are not linked.")
    return found


def _inside(graph: csr_array, rows: NDArray[np.intp]) -> csr_array:
    return csr_array(graph[rows][:, rows])


def _parts(labels: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    found = [np.flatnonzero(labels == part) for part in range(int(labels.max(initial=-1)) + 1)]
    return sorted(filter(len, found), key=len, reverse=True)
