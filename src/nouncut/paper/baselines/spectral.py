"""Spectral clustering with the six kernels of the paper's kernel table, on top-q graphs.

The paper gives the formula of one kernel, RBF (Eq. 5), and no bandwidth. The others are the usual
ones. Kernels that fall off with a distance divide it by its mean over the edges of the graph, so
that they are as wide for one encoder as for another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from nouncut.compute.checks import check_choice
from nouncut.compute.eigen import top_eigenpairs
from nouncut.method.graphs import normalize_graph, symmetrize_graph
from nouncut.method.labels import assign_labels
from nouncut.paper.baselines.method import Baseline, unit_array
from nouncut.paper.baselines.neighbors import Measure, cosine, nearest_images, negative_cityblock

KernelName = Literal["linear", "polynomial", "rbf", "exponential", "laplacian", "sigmoid"]
KERNEL_NAMES: tuple[KernelName, ...] = get_args(KernelName)


class _Kernel(NamedTuple):
    """What neighbours are found by, and what that measure is worth as the weight of an edge."""

    measure: Measure
    weigh: Callable[[NDArray[Any]], NDArray[Any]]


def _fall_off(distances: NDArray[Any]) -> NDArray[Any]:
    mean = float(distances.mean())
    return np.asarray(np.exp(-distances / mean)) if mean > 0 else np.ones_like(distances)


def _squared_distances(cosines: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.maximum(2 - 2 * cosines, 0))


# All rows have length one, so all but the sum of absolute differences depend on the cosine alone.
_KERNELS = {
    "linear": _Kernel(cosine, lambda cosines: np.maximum(cosines, 0)),
    "polynomial": _Kernel(cosine, lambda cosines: np.maximum(1 + cosines, 0) ** 3),
    "rbf": _Kernel(cosine, lambda cosines: _fall_off(_squared_distances(cosines))),
    "exponential": _Kernel(cosine, lambda cosines: _fall_off(np.sqrt(_squared_distances(cosines)))),
    "laplacian": _Kernel(negative_cityblock, lambda negative: _fall_off(-negative)),
    "sigmoid": _Kernel(cosine, lambda cosines: np.maximum(np.tanh(cosines), 0)),
}


class KernelSpectralClustering(Baseline):
    """Spectral clustering on the nearest neighbours under a kernel."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: KernelName = "rbf",
        n_neighbors: int = 30,
        neighbors: Literal["union", "mutual"] = "union",
        assign_labels: Literal["discretize", "cluster_qr", "kmeans"] = "discretize",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.assign_labels = assign_labels
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster images."""
        rng = check_random_state(self.random_state)
        directed = kernel_graph(unit_array(X), self.kernel, self.n_neighbors)
        self.graph_ = symmetrize_graph(directed, self.neighbors)
        normalized, _ = normalize_graph(self.graph_)
        vectors = top_eigenpairs(normalized, self.n_clusters, random_state=rng).vectors
        self.labels_ = assign_labels(vectors, self.assign_labels, rng)
        return self


def kernel_graph(features: NDArray[Any], kernel: KernelName, q: int) -> csr_array:
    """Return the directed graph in which every image points at its q nearest images."""
    check_choice("kernel", kernel, KERNEL_NAMES)
    measure, weigh = _KERNELS[kernel]
    found = nearest_images(features, q, measure)
    n_images, n_kept = found.indices.shape
    indptr = np.arange(0, n_images * n_kept + 1, n_kept)
    graph = csr_array(
        (weigh(found.values).ravel(), found.indices.ravel(), indptr), shape=(n_images, n_images)
    )
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph
