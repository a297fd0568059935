from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array

from nouncut.distributed.union import kept_components, union_rows
from nouncut.distributed.visits import EDGE
from nouncut.method.graphs import excluded_images, neighbor_graph, symmetrize_graph
from nouncut.method.neighbors import Neighbors


def random_neighbors(rng, n, q):
    indices = np.array([rng.permutation(n)[:q] for _ in range(n)], np.int32)
    indices[indices == np.arange(n)[:, None]] = -1
    indices[rng.random(indices.shape) < 0.2] = -1
    return indices, np.where(indices >= 0, rng.random(indices.shape) + 0.1, 0).astype(np.float32)


def union_by_parts(found, starts):
    """Return the rows of all partitions as whole graphs, one per prompt."""
    n, graphs = starts[-1], [[] for _ in found]
    indices, values = (np.stack(part) for part in zip(*found, strict=True))
    for start, stop in itertools.pairwise(starts):
        prompts, rows, places = np.nonzero((indices >= start) & (indices < stop))
        edges = np.empty(len(rows), EDGE)
        edges["source"], edges["target"] = rows, indices[prompts, rows, places]
        edges["value"], edges["prompt"] = values[prompts, rows, places], prompts
        incoming = edges[(rows < start) | (rows >= stop)]
        own = slice(start, stop)
        part, halo = union_rows(indices[:, own], values[:, own], incoming, start, stop)
        columns = np.concatenate([np.arange(start, stop), halo])[part.indices]
        for graph, edges in zip(graphs, part.edges, strict=True):
            graph.append(csr_array((edges, columns, part.indptr), shape=(stop - start, n)))
    from scipy.sparse import vstack

    return [csr_array(vstack(parts)) for parts in graphs]


@given(seed=st.integers(0, 10**6), n=st.integers(4, 40), n_parts=st.integers(1, 4))
def test_the_union_of_parts_is_that_of_the_whole(seed, n, n_parts):
    rng = np.random.default_rng(seed)
    found = [random_neighbors(rng, n, 3) for _ in range(2)]
    starts = np.unique(np.concatenate([[0], rng.integers(1, n, n_parts - 1), [n]]))
    for part, (indices, values) in zip(union_by_parts(found, starts), found, strict=True):
        whole = symmetrize_graph(neighbor_graph(Neighbors(indices, values), n))
        assert abs(part - whole).max() < 1e-7


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 10])
def test_the_same_nodes_are_left_out_as_on_one_machine(n_clusters):
    sizes = [30, 1, 20, 2, 1, 9, 3]
    graph = csr_array(block_diag([np.ones((n, n)) - np.eye(n) for n in sizes]))
    whole = excluded_images(graph, n_clusters)
    # Two partitions; the cut runs through the second block.
    middle, component = 40, np.repeat(np.arange(len(sizes)), sizes)
    parts = [
        np.unique(part, return_inverse=True)[1] for part in (component[:middle], component[middle:])
    ]
    links = [np.array([[2, 1, 0]]), np.array([[0, 0, 2]])]
    keeps, n_out, n_alone = kept_components(
        [np.bincount(part) for part in parts], links, n_clusters
    )
    kept = np.concatenate([keep[part] for keep, part in zip(keeps, parts, strict=True)])
    assert np.flatnonzero(~kept).tolist() == whole.tolist()
    assert (n_out, n_alone) == (len(whole), 2)
