"""Spectral clustering with the six kernels of the paper's kernel table, on mutual top-q graphs.

RBF is the paper's Eq. 5: ``exp(-||z_i - z_j||^2 / tau)`` where each of two images is among the
q = 30 nearest of the other. The paper names five further kernels without formulas; we take the
usual ones, on the same graph. A distance without a temperature is divided by its mean over the
edges, which makes the width independent of the encoder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from nouncut.compute.eigen import top_eigenpairs
from nouncut.method.choices import Symmetry
from nouncut.method.graphs import normalize_graph, symmetrize_graph
from nouncut.method.labels import assign_labels
from nouncut.paper.baselines.nearest import Similarity, cosine, nearest_images, negative_cityblock

KernelName = Literal["linear", "polynomial", "rbf", "exponential", "laplacian", "sigmoid"]
KERNEL_NAMES: tuple[KernelName, ...] = get_args(KernelName)
# The paper's q, the same as in our method.
_NEIGHBORS = 30


class _Kernel(NamedTuple):
    """The similarity that finds neighbours, and the function of it and tau that weighs edges."""

    similarity: Similarity
    weigh: Callable[[NDArray[Any], float | None], NDArray[Any]]


def _decay(distances: NDArray[Any], tau: float | None = None) -> NDArray[Any]:
    width = float(distances.mean()) if tau is None else tau
    return np.asarray(np.exp(-distances / width)) if width > 0 else np.ones_like(distances)


def _squared_distances(cosines: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.maximum(2 - 2 * cosines, 0))


# All rows have length one, so every kernel but Laplace's depends on the cosine alone. The paper
# gives a temperature to RBF only.
_KERNELS: dict[KernelName, _Kernel] = {
    "linear": _Kernel(cosine, lambda cosines, _: np.maximum(cosines, 0)),
    "polynomial": _Kernel(cosine, lambda cosines, _: np.maximum(1 + cosines, 0) ** 3),
    "rbf": _Kernel(cosine, lambda cosines, tau: _decay(_squared_distances(cosines), tau)),
    "exponential": _Kernel(cosine, lambda cosines, _: _decay(np.sqrt(_squared_distances(cosines)))),
    "laplacian": _Kernel(negative_cityblock, lambda negative, _: _decay(-negative)),
    "sigmoid": _Kernel(cosine, lambda cosines, _: np.maximum(np.tanh(cosines), 0)),
}


def kernel_spectral_clustering(
    features: NDArray[np.float32],
    n_clusters: int,
    kernel: KernelName,
    random_state: int,
    *,
    tau: float | None = None,
    neighbors: Symmetry = "mutual",
) -> NDArray[np.intp]:
    """Cluster unit rows on the graph of nearest neighbours under a kernel."""
    graph = symmetrize_graph(kernel_graph(features, kernel, _NEIGHBORS, tau), neighbors)
    return cut_graph(graph, n_clusters, random_state)


def cut_graph(graph: csr_array, n_clusters: int, random_state: int) -> NDArray[np.intp]:
    """Cut a symmetric graph into clusters: the normalised cut, labels by discretisation."""
    rng = check_random_state(random_state)
    normalized, _ = normalize_graph(graph)
    vectors = top_eigenpairs(normalized, n_clusters, random_state=rng).vectors
    return assign_labels(vectors, "discretize", rng)


def kernel_graph(
    features: NDArray[Any], kernel: KernelName, q: int, tau: float | None = None
) -> csr_array:
    """Return the directed graph from every image to its q nearest images."""
    similarity, weigh = _KERNELS[kernel]
    found = nearest_images(features, q, similarity)
    n_images, n_kept = found.indices.shape
    indptr = np.arange(0, n_images * n_kept + 1, n_kept)
    graph = csr_array(
        (weigh(found.similarities, tau).ravel(), found.indices.ravel(), indptr),
        shape=(n_images, n_images),
    )
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph
