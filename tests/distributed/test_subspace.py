from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from task_functions import keep_product

from nouncut.compute.eigen import guard_vectors, spectrum_floor, top_eigenpairs
from nouncut.compute.iteration import iterate_subspace
from nouncut.distributed.blocks import read_block
from nouncut.distributed.halo import RowGraph, lowest_eigenvalue, products
from nouncut.distributed.stages import Engine, Flow, Task
from nouncut.distributed.storage import Storage
from nouncut.distributed.subspace import PartitionedSubspace
from nouncut.method.graphs import normalized_mean, symmetric_graphs
from nouncut.method.neighbors import kernel_neighbors
from nouncut.paper.synthetic import make_clip_like

K = 6


@pytest.fixture(scope="module")
def graph():
    features = make_clip_like(900, K, random_state=0).features
    return normalized_mean(symmetric_graphs(kernel_neighbors(features, [], 12)))


def partition(storage: Storage, graph: csr_array, starts: list[int]) -> list[list[int]]:
    """Write a graph as row partitions; return where halos begin."""
    offsets = []
    for p, (a, b) in enumerate(itertools.pairwise(starts)):
        rows = csr_array(graph[a:b])
        outside = np.unique(rows.indices[(rows.indices < a) | (rows.indices >= b)]).astype(np.int64)
        columns = np.concatenate([np.arange(a, b), outside])
        rows = csr_array(rows[:, columns])
        storage.write_several(
            f"graph/{p:05d}.npz",
            indptr=rows.indptr.astype(np.int64),
            indices=rows.indices.astype(np.int32),
            edges=rows.data[None].astype(np.float32),
        )
        storage.write(f"halo/{p:05d}.npy", outside)
        offsets.append(np.searchsorted(outside, starts).tolist())
    return offsets


@pytest.fixture
def parts(client, tmp_path, graph):
    storage, starts = Storage(str(tmp_path)), [0, 200, 550, 900]
    offsets = partition(storage, graph, starts)
    return RowGraph(Engine(client, storage), "graph", starts, offsets)


def test_products_of_parts_are_those_of_the_whole(parts, graph):
    block = np.random.default_rng(0).normal(size=(900, 5)).astype(np.float32)
    pieces = [block[a:b] for a, b in zip(parts.starts[:-1], parts.starts[1:], strict=True)]
    flow = Flow()
    images = products(flow, parts, [flow.add(np.asarray, a=piece) for piece in pieces])
    tasks = [Task(str(p), keep_product, {"partition": p}, (one,)) for p, one in enumerate(images)]
    parts.engine.run("product", tasks, flow=flow)
    found = [parts.engine.storage.read(f"product/{p}.npy") for p in range(3)]
    assert np.allclose(np.concatenate(found), graph @ block, atol=1e-6)


def test_the_lowest_eigenvalue_is_bounded(parts, graph):
    lowest = np.linalg.eigvalsh(graph.toarray())[0]
    assert -1 <= lowest_eigenvalue(parts, "test") <= lowest
    assert lowest_eigenvalue(parts, "test") == pytest.approx(spectrum_floor(graph), abs=0.05)


def solve(graph: RowGraph, panel: int) -> tuple[np.ndarray, PartitionedSubspace]:
    lowest = lowest_eigenvalue(graph, "a")
    space = PartitionedSubspace(graph, "eigen", K + guard_vectors(K), lowest, panel, 0)
    return iterate_subspace(space, K, 1e-4), space


@pytest.mark.parametrize("panel", [12, 100])
def test_eigenvectors_are_those_of_one_machine_and_replaying_repeats_no_task(parts, graph, panel):
    values, space = solve(parts, panel)
    expected = top_eigenpairs(graph, K, tol=1e-4, random_state=0)
    rest = {"folder": space.block, "columns": space.columns, "transform": None}
    blocks = [read_block(parts.engine.storage, p, {"columns": []}, rest) for p in range(3)]
    vectors = np.concatenate(blocks)[:, :K]
    assert np.allclose(values[:K], expected.values[:K], atol=1e-5)
    cosines = np.linalg.svd(vectors.T @ expected.vectors[:, :K], compute_uv=False)
    assert cosines.min() > 0.9999
    assert np.abs(graph @ vectors - vectors * values[:K]).max() < 1e-4
    engine = Engine(parts.engine.client, Storage(parts.engine.storage.url))
    assert np.array_equal(solve(parts._replace(engine=engine), panel)[0], values)
    assert all(count.n_finished == count.n_tasks for count in engine.counts.values())
