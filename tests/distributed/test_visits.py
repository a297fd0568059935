"""Near cells, visits and what they find, against the exact kernel; no cluster is needed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut.distributed import near as near_module
from nouncut.distributed import visits as visits_module
from nouncut.distributed.cells import (
    Coupling,
    Layout,
    choose_cells,
    gather_nodes,
    sample_shard,
    sort_shard,
    split_cells,
)
from nouncut.distributed.near import CellMeans, near_cells, visited_cells
from nouncut.distributed.neighbors import find_neighbors
from nouncut.distributed.storage import Storage
from nouncut.distributed.visits import EDGE, add_found, bring_home, send_visitors
from nouncut.method.kernel import noun_probabilities
from nouncut.method.neighbors import kernel_neighbors
from nouncut.paper.synthetic import make_clip_like

TAU, Q, N_CELLS = 0.04, 8, 40
COUPLING = Coupling(TAU, 1.0, has_nouns=True)._asdict()


@pytest.fixture(scope="module")
def data():
    # Many images are poor examples of their class, so their neighbours are scattered.
    return make_clip_like(2400, 12, n_nouns=90, n_prompts=2, separation=0.3, dim=64, random_state=3)


@pytest.fixture(scope="module")
def exact(data):
    probabilities = noun_probabilities(data.features, data.noun_features, TAU)
    return kernel_neighbors(data.features, probabilities, Q)


def search(folder, data, n_near, close, monkeypatch, n_candidates=6 * Q):
    """Run the tasks of the search; return neighbours by image, and the number of visits."""
    monkeypatch.setattr(near_module, "_CLOSE", close)
    monkeypatch.setattr(visits_module, "_NODES_AT_ONCE", 300)
    storage, n = Storage(str(folder)), len(data.features)
    storage.write("features/00000.npy", data.features)
    storage.write("choices/nouns.npy", np.stack(data.noun_features))
    sample_shard(storage, 0, 0, n, n, False)
    choose_cells(storage, 1, n, N_CELLS, N_CELLS, Q, COUPLING)
    storage.write("cells/near-0.npy", near_cells(CellMeans.read(storage), n_near))
    sort_shard(storage, 0, 0, COUPLING)
    firsts = split_cells(np.diff(storage.read("sorted/00000/ends.npy")), 3)
    counts = []
    for p, (a, b) in enumerate(pairwise(firsts.tolist())):
        counts += gather_nodes(storage, p, 1, a, b, COUPLING)["counts"]
    ends = np.concatenate([[0], np.cumsum(counts)])
    layout = Layout(ends[firsts], ends, firsts)
    storage.write_several("layout.npz", **layout._asdict())
    storage.write("checked.npy", np.arange(0, n, 100))
    parts = list(enumerate(pairwise(firsts.tolist())))
    visits = [send_visitors(storage, p, 0, COUPLING)["n_visits"] for p, _ in parts]
    found = [
        find_neighbors(storage, p, 0, a, b, Q, n_candidates, 0, 10**9, COUPLING)["offsets"]
        for p, (a, b) in parts
    ]
    indices, values, names = [], [], []
    for p, _ in parts:
        sources = [f"{other:05d}-000" for other, _ in parts]
        bring_home(storage, p, 0, [0], sources, [one[p : p + 2] for one in found])
        own = storage.read_several(f"neighbors-0/{p:05d}.npz")
        indices.append(own["indices"])
        values.append(own["values"])
        names.append(storage.read(f"nodes/{p:05d}/rows.npy"))
    images = np.concatenate(names)
    indices, values = np.concatenate(indices, axis=1), np.concatenate(values, axis=1)
    order = np.argsort(images)
    return images[indices[:, order]], values[:, order], sum(visits)


def recall(found, exact):
    shares = [
        np.isin(wanted, own).mean()
        for prompt, nearest in zip(found, exact, strict=True)
        for own, wanted in zip(prompt, nearest.indices, strict=True)
    ]
    return float(np.mean(shares))


def test_visits_find_what_near_cells_miss(tmp_path, data, exact, monkeypatch):
    alone, _, none = search(tmp_path / "alone", data, 4, 2.0, monkeypatch)
    found, values, n_visits = search(tmp_path / "visits", data, 4, 0.7, monkeypatch)
    assert none == 0
    assert 0 < n_visits <= 2 * len(data.features)
    assert recall(found, exact) > recall(alone, exact) + 0.05
    probabilities = noun_probabilities(data.features, data.noun_features, TAU)
    for prompt, own in enumerate(found):
        assert all(len({image, *row}) == Q + 1 for image, row in enumerate(own.tolist()))
        for image in (0, 7, 1234):
            row = own[image]
            kernel = data.features[row] @ data.features[image]
            kernel = kernel * (probabilities[prompt][row] @ probabilities[prompt][image])
            assert np.allclose(values[prompt, image], kernel, rtol=1e-4)
            assert (np.diff(values[prompt, image]) <= 0).all()


def test_all_cells_give_the_exact_neighbours(tmp_path, data, exact, monkeypatch):
    found, _, n_visits = search(tmp_path, data, N_CELLS, 0.9, monkeypatch, 1200)
    assert n_visits == 0
    assert recall(found, exact) > 0.995


def test_visits_are_close_and_not_near_each_other():
    rng = np.random.default_rng(0)
    kernel, near = rng.random((50, 20)).astype(np.float32), rng.integers(0, 20, (20, 3))
    near = np.hstack([np.arange(20)[:, None], near]).astype(np.int32)
    own = rng.integers(0, 20, 50)
    visits = visited_cells(kernel.copy(), own, near)
    assert (visits[:, 0] >= 0).any()
    assert (visits[:, 0] < 0).any()
    for image, (first, second) in enumerate(visits.tolist()):
        allowed = kernel[image] >= np.float32(0.9) * kernel[image].max()
        allowed[near[own[image]]] = False
        assert first == (np.argmax(np.where(allowed, kernel[image], -1)) if allowed.any() else -1)
        if first >= 0:
            allowed[near[first]] = False
        assert second == (np.argmax(np.where(allowed, kernel[image], -1)) if allowed.any() else -1)


@given(st.data())
def test_joining_keeps_the_largest_of_each_neighbour(data):
    q, n_nodes, start = 3, 4, 100
    number = st.integers(0, 9)
    indices = np.full((1, n_nodes, q), -1, np.int32)
    values = np.zeros((1, n_nodes, q), np.float32)
    for row in range(n_nodes):
        own = data.draw(st.dictionaries(number, st.integers(1, 50), max_size=q))
        best = sorted(own.items(), key=lambda pair: (-pair[1], pair[0]))
        for place, (target, value) in enumerate(best):
            indices[0, row, place], values[0, row, place] = target, value
    edges = data.draw(
        st.lists(st.tuples(st.integers(0, 3), number, st.integers(1, 50)), max_size=9)
    )
    found = np.array([(start + a, b, c, 0) for a, b, c in edges], EDGE)
    expected = []
    for row in range(n_nodes):
        every = {}
        own = zip(indices[0, row].tolist(), values[0, row].tolist(), strict=True)
        for target, value in [*own, *((b, c) for a, b, c in edges if a == row)]:
            if target >= 0:
                every[target] = max(value, every.get(target, 0))
        best = sorted(every.items(), key=lambda pair: (-pair[1], pair[0]))[:q]
        expected.append((best + [(-1, 0)] * q)[:q])
    add_found(indices, values, found, start)
    assert np.dstack([indices[0], values[0]]).tolist() == np.array(expected, float).tolist()
