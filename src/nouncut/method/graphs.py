"""Sparse graphs: from nearest neighbours to symmetric, normalised affinities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from nouncut.compute.patterns import with_entries
from nouncut.method.neighbors import Neighbors

Symmetry = Literal["union", "mutual"]
# The fewest that hold a cluster together, and the paper's number.
_NEIGHBORS = 2, 30
# Only keeps images without neighbours from dividing by zero; a larger floor would change
# the weights of weakly connected ones.
_TINY_DEGREE = np.finfo(np.float64).tiny


def choose_neighbors(n_images: int, n_clusters: int | None = None) -> int:
    """Choose how many neighbours every image keeps: twice the root of the images per cluster.

    Neighbours should be of the same cluster, so there must be fewer than a cluster has images,
    and enough to hold the cluster together. On made data of 3 to 150 images per cluster the best
    numbers follow this root (``benchmarks/neighbors.py``); the published 30 is reached at 225
    images per cluster and never exceeded.

    Parameters
    ----------
    n_images : int
        Number of images.
    n_clusters : int, optional
        Number of clusters; the root of half the images where it is not known.

    Returns
    -------
    int
        Between 2 and 30.

    Examples
    --------
    >>> from nouncut.method.graphs import choose_neighbors
    >>> choose_neighbors(50, 10), choose_neighbors(600, 24), choose_neighbors(10_000, 10)
    (4, 10, 30)
    """
    if n_clusters is None:
        n_clusters = max(1, round(np.sqrt(n_images / 2)))
    return int(np.clip(round(2 * np.sqrt(n_images / n_clusters)), *_NEIGHBORS))


def neighbor_graph(neighbors: Neighbors, n_columns: int, q: int | None = None) -> csr_array:
    """Return the directed graph in which every image points at its nearest images.

    Parameters
    ----------
    neighbors : Neighbors
        The q nearest images of n images.
    n_columns : int
        How many images they were chosen from.
    q : int, optional
        Use the q nearest of them only.

    Returns
    -------
    csr_array of shape (n, n_columns)
        Kernel values of the edges, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.neighbors import kernel_neighbors
    >>> from nouncut.method.graphs import neighbor_graph
    >>> z = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> neighbor_graph(kernel_neighbors(z, [], q=1)[0], 3).toarray().round(1)
    array([[0. , 0.8, 0. ],
           [0.8, 0. , 0. ],
           [0. , 0.6, 0. ]])
    """
    indices, values = neighbors.indices[:, :q], neighbors.values[:, :q]
    present = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    if indptr[-1] <= np.iinfo(np.int32).max:
        # Otherwise SciPy widens the indices of every edge as well.
        indptr = indptr.astype(np.int32)
    graph = csr_array(
        (values[present].astype(np.float64), indices[present], indptr),
        shape=(len(present), n_columns),
    )
    graph.sort_indices()
    return graph


def symmetrize_graph(graph: csr_array, neighbors: Symmetry = "union") -> csr_array:
    """Make a directed graph symmetric.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Directed graph with positive weights.
    neighbors : {"union", "mutual"}, default="union"
        "union" keeps an edge that either end chose; "mutual" keeps one that both chose, as in
        the paper's Eq. 8, and can leave many images without any edge.

    Returns
    -------
    csr_array of shape (n, n)
        Symmetric graph.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.graphs import symmetrize_graph
    >>> directed = csr_array(np.array([[0, 1.0, 2.0], [1.0, 0, 0], [0, 0, 0]]))
    >>> symmetrize_graph(directed, "mutual").toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    if neighbors not in get_args(Symmetry):
        raise ValueError(f'neighbors must be "union" or "mutual", not {neighbors!r}.')
    merge = graph.maximum if neighbors == "union" else graph.minimum
    symmetric = csr_array(merge(graph.T.tocsr()))
    symmetric.eliminate_zeros()
    symmetric.sort_indices()
    return symmetric


def normalize_graph(graph: csr_array) -> tuple[csr_array, NDArray[np.float64]]:
    """Divide every edge by the square roots of its ends' degrees.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric graph A.

    Returns
    -------
    normalized : csr_array of shape (n, n)
        ``D^-1/2 A D^-1/2``, its eigenvalues between -1 and 1.
    degrees : ndarray of shape (n,)
        The row sums of A.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.graphs import normalize_graph
    >>> normalized, degrees = normalize_graph(csr_array(np.array([[0, 4.0], [4.0, 0]])))
    >>> normalized.toarray(), degrees
    (array([[0., 1.],
           [1., 0.]]), array([4., 4.]))
    """
    degrees = _degrees(graph)
    return normalize_rows(graph, degrees), degrees


def isolated_images(graph: csr_array) -> NDArray[np.intp]:
    """Return the images that have no edge.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric graph.

    Returns
    -------
    ndarray of shape (n_isolated,)
        Their indices, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.graphs import isolated_images
    >>> isolated_images(csr_array(np.diag([1.0, 0.0], k=1) + np.diag([1.0, 0.0], k=-1)))
    array([2])
    """
    return np.flatnonzero(np.diff(graph.indptr) == 0)


def normalize_rows(rows: csr_array, degrees: NDArray[Any]) -> csr_array:
    """Normalise the edges from new images to the images of a graph.

    Parameters
    ----------
    rows : csr_array of shape (n_new, n)
        Kernel values between new images and the images of the graph.
    degrees : ndarray of shape (n,)
        The degrees in the graph.

    Returns
    -------
    csr_array of shape (n_new, n)
        Every edge divided by the square roots of its ends' degrees.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.graphs import normalize_rows
    >>> normalize_rows(csr_array(np.array([[4.0, 0.0]])), np.array([1.0, 9.0])).toarray()
    array([[2., 0.]])
    """
    own = np.repeat(_inverse_roots(_degrees(rows)), np.diff(rows.indptr))
    return with_entries(rows, own * rows.data * _inverse_roots(degrees)[rows.indices])


def stray_images(graph: csr_array, n_clusters: int) -> NDArray[np.intp]:
    """Return the images that cannot take part in the cut of a graph.

    These are the images without an edge. Where the graph falls apart into more components than
    there are clusters, every cut between components is free and tells nothing; then the images
    of small components (less than a tenth of an average cluster) are strays too, and so are
    those of all but the `n_clusters` largest.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric graph.
    n_clusters : int
        How many clusters are wanted.

    Returns
    -------
    ndarray of shape (n_strays,)
        Their indices, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import block_diag, csr_array
    >>> from nouncut.method.graphs import stray_images
    >>> big, small = np.ones((30, 30)), np.ones((2, 2))
    >>> stray_images(csr_array(block_diag([big, big, small])), n_clusters=2)
    array([60, 61])
    """
    n_components, component = connected_components(graph, directed=False)
    sizes = np.bincount(component)
    keeps = sizes > 1
    if keeps.sum() > n_clusters:
        keeps &= sizes >= graph.shape[0] / (10 * n_clusters)
        largest = np.argsort(-sizes, kind="stable")[:n_clusters]
        keeps &= np.isin(np.arange(n_components), largest)
    return np.flatnonzero(~keeps[component])


def mean_graph(graphs: Sequence[csr_array], weights: NDArray[Any]) -> csr_array:
    """Return the weighted sum of sparse graphs.

    Parameters
    ----------
    graphs : sequence of csr_array of shape (n, n)
        Graphs.
    weights : ndarray of shape (n_graphs,)
        Their weights; graphs of weight zero leave no trace in the result's pattern.

    Returns
    -------
    csr_array of shape (n, n)
        The weighted sum.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.graphs import mean_graph
    >>> one, two = csr_array(np.eye(2)), csr_array(np.eye(2)[::-1])
    >>> mean_graph([one, two], np.array([0.75, 0.25])).toarray()
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    terms = [graph * weight for graph, weight in zip(graphs, weights, strict=True) if weight]
    total = csr_array(sum(terms[1:], start=terms[0]))
    total.sort_indices()
    return total


def even_mean(graphs: Sequence[csr_array]) -> csr_array:
    """Return the mean of sparse graphs.

    Parameters
    ----------
    graphs : sequence of csr_array of shape (n, n)
        Graphs.

    Returns
    -------
    csr_array of shape (n, n)
        Their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.graphs import even_mean
    >>> even_mean([csr_array(np.eye(2)), csr_array(3 * np.eye(2))]).toarray()
    array([[2., 0.],
           [0., 2.]])
    """
    return mean_graph(graphs, np.full(len(graphs), 1 / len(graphs)))


def spread_graph(graph: csr_array, images: NDArray[np.intp], n_images: int) -> csr_array:
    """Write the graph of some images as a graph of all, without edges for the others.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Graph of the chosen images.
    images : ndarray of shape (n,)
        Which ones they are, ascending.
    n_images : int
        How many there are in all.

    Returns
    -------
    csr_array of shape (n_images, n_images)
        The same edges between the same images.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.graphs import spread_graph
    >>> pair = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> spread_graph(pair, np.array([0, 2]), 3).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [1., 0., 0.]])
    """
    counts = np.zeros(n_images, dtype=graph.indptr.dtype)
    counts[images] = np.diff(graph.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((graph.data, images[graph.indices], indptr), shape=(n_images, n_images))


def add_copies(graph: csr_array, originals: NDArray[np.intp]) -> csr_array:
    """Tie every copy to its original by an edge of weight 1.

    Parameters
    ----------
    graph : csr_array of shape (n_images, n_images)
        Normalised graph in which copies have no edges.
    originals : ndarray of shape (n_images,)
        From `find_originals`.

    Returns
    -------
    csr_array of shape (n_images, n_images)
        Symmetric graph.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from nouncut.method.graphs import add_copies
    >>> add_copies(csr_array((2, 2)), np.array([0, 0])).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    copies = np.flatnonzero(originals != np.arange(len(originals)))
    ends = np.concatenate([copies, originals[copies]]), np.concatenate([originals[copies], copies])
    total = csr_array(graph + csr_array((np.ones(2 * len(copies)), ends), shape=graph.shape))
    total.sort_indices()
    return total


def _degrees(graph: csr_array) -> NDArray[np.float64]:
    return np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()


def _inverse_roots(degrees: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1 / np.sqrt(np.maximum(degrees, _TINY_DEGREE)))
