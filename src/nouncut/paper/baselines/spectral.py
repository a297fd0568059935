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
    """Spectral clustering on the nearest neighbours under a kernel.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, default="rbf"
        With unit features x and y: "linear" ``x.y``, "polynomial" ``(1 + x.y)^3``, "rbf"
        ``exp(-||x-y||^2 / s)``, "exponential" ``exp(-||x-y|| / s)``, "laplacian"
        ``exp(-||x-y||_1 / s)``, "sigmoid" ``tanh(x.y)``; negative values count as 0, and s is
        the mean of the (squared) distance over all pairs of neighbours.
    n_neighbors : int, default=30
        Neighbours q that every image keeps.
    neighbors : {"union", "mutual"}, default="union"
        Keep an edge that either image chose, or only one that both chose (the paper's Eq. 5,
        which can leave images without an edge).
    assign_labels : {"discretize", "cluster_qr", "kmeans"}, default="discretize"
        How eigenvectors become labels.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Attributes
    ----------
    labels_ : ndarray of shape (n_images,)
        Cluster of every image; 0 is the largest.
    graph_ : csr_array of shape (n_images, n_images)
        The graph that was cut, before normalisation.

    Examples
    --------
    >>> from nouncut.paper.baselines.spectral import KernelSpectralClustering
    >>> X = [[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.0, 1.0], [0.1, 1.0]]
    >>> KernelSpectralClustering(2, n_neighbors=1, random_state=0).fit_predict(X)
    array([0, 0, 0, 1, 1])
    """

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
        """Cluster images.

        Parameters
        ----------
        X : array-like of shape (n_images, n_features)
            Image features, of any length.
        y : ignored
            Not used, present for scikit-learn's API.

        Returns
        -------
        KernelSpectralClustering
            The fitted estimator.
        """
        rng = check_random_state(self.random_state)
        directed = kernel_graph(unit_array(X), self.kernel, self.n_neighbors)
        self.graph_ = symmetrize_graph(directed, self.neighbors)
        normalized, _ = normalize_graph(self.graph_)
        vectors = top_eigenpairs(normalized, self.n_clusters, random_state=rng).vectors
        self.labels_ = assign_labels(vectors, self.assign_labels, rng)
        return self


def kernel_graph(features: NDArray[Any], kernel: KernelName, q: int) -> csr_array:
    """Return the directed graph in which every image points at its q nearest images.

    Parameters
    ----------
    features : ndarray of shape (n_images, d)
        Unit image features.
    kernel : str
        One of `KERNEL_NAMES`; see `KernelSpectralClustering`.
    q : int
        Neighbours to keep; an image is never its own neighbour.

    Returns
    -------
    csr_array of shape (n_images, n_images)
        Kernel values of the edges.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.paper.baselines.spectral import kernel_graph
    >>> z = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> kernel_graph(z, "linear", 1).toarray()
    array([[0. , 0.8, 0. ],
           [0.8, 0. , 0. ],
           [0. , 0.6, 0. ]])
    """
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
