"""The whole method on partitions against the estimator on one machine."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from nouncut.compute.rows import unit_rows
from nouncut.distributed.cells import (
    Coupling,
    Layout,
    bisection_order,
    sample_shard,
    split_cells,
)
from nouncut.distributed.features import feature_shards, read_shard
from nouncut.distributed.fit import FitOptions, Shards, fit_shards, group_cells
from nouncut.distributed.halo import RowGraph
from nouncut.distributed.result import _fill_clusters, finish_labels
from nouncut.distributed.sizes import Sizes
from nouncut.distributed.stages import Engine, Task
from nouncut.distributed.storage import Storage
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.graphs import choose_neighbors
from nouncut.method.labels import cluster_sums
from nouncut.paper.synthetic import make_clip_like

N_CLUSTERS, MEMORY = 6, 10**9


def fit_on_cluster(client, folder, features, prompts, n_partitions=2, n_files=2):
    """Fit features that lie in several files; return labels, fit and finished labels."""
    (folder / "source").mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(features, n_files)):
        np.save(folder / "source" / f"{number}.npy", part)
    engine = Engine(client, Storage(str(folder / "work")))
    listed = feature_shards([str(folder / "source")], MEMORY)
    found = engine.run(
        "features",
        [Task(str(i), read_shard, {"number": i, "shard": one}) for i, one in enumerate(listed)],
    )
    shards = Shards([one["n_rows"] for one in found])
    n = len(features)
    sizes = Sizes(n, features.shape[1], max(1, len(prompts)), MEMORY)
    plain = {"n_images": n, "size": sizes.sample, "has_semantic": False}
    tasks = [
        Task(str(i), sample_shard, {"shard": i, "start": start} | plain)
        for i, start in enumerate(shards.starts)
    ]
    engine.run("sample", tasks)
    coupling = Coupling(0.04, 1.0, has_nouns=bool(prompts))
    if prompts:
        engine.storage.write("choices/nouns.npy", np.stack(prompts))
    options = FitOptions(N_CLUSTERS, choose_neighbors(n, N_CLUSTERS), 0, n_partitions)
    fit = fit_shards(engine, shards, coupling, sizes, options)
    finished = finish_labels(fit, coupling)
    labels = np.empty(n, int)
    for p in range(fit.graph.n_partitions):
        rows = engine.storage.read(f"nodes/{p:05d}/rows.npy")
        own = engine.storage.read(f"final/{p:05d}.npy")
        copies = engine.storage.read(f"nodes/{p:05d}/copies.npy")
        labels[rows], labels[copies[:, 0]] = own, own[copies[:, 1]]
    return SimpleNamespace(labels=labels, fit=fit, finished=finished, engine=engine)


@pytest.fixture(scope="module")
def data():
    made = make_clip_like(
        1800, N_CLUSTERS, n_nouns=60, n_prompts=2, separation=0.25, dim=128, random_state=0
    )
    features = made.features.copy()
    features[-20:] = features[:20]  # copies
    features[900] = unit_rows(-features.mean(axis=0)[None])[0]  # like no other image
    return made._replace(features=features)


@pytest.fixture(scope="module")
def one_machine(data):
    with pytest.warns(UserWarning, match="no neighbour"):
        return NTKSpectralClustering(N_CLUSTERS, random_state=0).fit(
            data.features, noun_features=data.noun_features
        )


@pytest.fixture(scope="module")
def on_cluster(client, tmp_path_factory, data):
    with pytest.warns(UserWarning, match="1 of 1780 images have no neighbour"):
        return fit_on_cluster(
            client, tmp_path_factory.mktemp("fit"), data.features, data.noun_features
        )


def test_labels_and_weights_are_those_of_one_machine(on_cluster, one_machine):
    assert adjusted_rand_score(one_machine.labels_, on_cluster.labels) >= 0.98
    weights = on_cluster.fit.prompts.weights
    assert np.abs(weights - one_machine.prompt_weights_).max() < 0.01
    assert on_cluster.fit.search.recall >= 0.99
    assert np.allclose(
        on_cluster.fit.spectrum[:N_CLUSTERS], one_machine.spectrum_[:N_CLUSTERS], atol=2e-3
    )


def test_clusters_are_numbered_by_size_and_memberships_agree(on_cluster, one_machine):
    assert on_cluster.finished.sizes.tolist() == np.bincount(on_cluster.labels).tolist()
    assert (np.diff(on_cluster.finished.sizes) <= 0).all()
    temperature = one_machine.membership_temperature_
    # It rests on the stability of random draws, which are others here.
    assert on_cluster.finished.temperature == pytest.approx(temperature, rel=0.2)


def test_copies_share_a_node_and_isolated_images_are_placed(on_cluster, one_machine):
    assert on_cluster.fit.n_copies == 20
    assert on_cluster.labels[-20:].tolist() == on_cluster.labels[:20].tolist()
    assert (on_cluster.fit.n_excluded, on_cluster.fit.n_isolated) == (1, 1)
    same = on_cluster.labels == on_cluster.labels[900]
    mine = np.flatnonzero(one_machine.labels_ == one_machine.labels_[900])
    # Placed in the cluster that one machine placed it in.
    assert np.mean(same[mine]) > 0.9


@pytest.mark.filterwarnings("ignore:1 of 1780 images")
def test_partitions_do_not_change_the_labels(client, tmp_path, data, on_cluster):
    other = fit_on_cluster(client, tmp_path, data.features, data.noun_features, 1, n_files=3)
    assert adjusted_rand_score(other.labels, on_cluster.labels) > 0.995


@pytest.mark.filterwarnings("ignore:1 of 1780 images")
def test_a_repeated_fit_repeats_no_task(client, data, on_cluster):
    folder = on_cluster.engine.storage.folder.parent
    again = fit_on_cluster(client, folder, data.features, data.noun_features)
    assert np.array_equal(again.labels, on_cluster.labels)
    assert all(one.n_finished == one.n_tasks for one in again.engine.counts.values())


def test_cells_are_split_into_even_ranges():
    counts = np.array([5, 0, 5, 10, 1, 9])
    assert split_cells(counts, 3).tolist() == [0, 3, 4, 6]
    # An empty cell joins the one after it.
    assert split_cells(counts, 100).tolist() == [0, 1, 3, 4, 5, 6]


def test_near_points_are_close_in_the_order():
    points = np.random.default_rng(0).permutation(np.arange(64.0))[:, None] * np.ones((1, 3))
    order = bisection_order(points)
    assert sorted(order.tolist()) == list(range(64))
    assert np.abs(np.diff(points[order, 0])).mean() < 4


def test_groups_of_cells_fit_in_memory():
    rng = np.random.default_rng(0)
    counts, near = rng.integers(0, 500, 60), rng.integers(0, 60, (60, 5)).astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(counts)])
    firsts = np.array([0, 25, 60])
    layout = Layout(ends[firsts], ends, firsts)
    sizes = Sizes(int(ends[-1]), 64, 2, 3 * 10**7)
    groups = group_cells(layout, near, sizes, 40, 10)
    assert [(part[0][0], part[-1][1]) for part in groups] == [(0, 25), (25, 60)]
    for part in groups:
        assert all(b == c for (_, b), (c, _) in pairwise(part))
        for a, b in part:
            around = set(near[a:b].ravel())
            n_around = sum(counts[list(around)])
            used = sizes.group_bytes(int(ends[b] - ends[a]), n_around, 40, 10)
            assert used <= sizes.most_group_bytes or b == a + 1
    assert sum(map(len, groups)) > 4


def test_sizes_follow_the_memory_of_a_worker():
    small, large = (Sizes(2_000_000, 512, 7, memory) for memory in (2 * 10**9, 16 * 10**9))
    assert small.partitions(30, 200) > large.partitions(30, 200) >= 8
    assert small.sample < large.sample <= 200_000
    assert small.most_group_bytes < large.most_group_bytes
    assert small.most_near < large.most_near <= large.cells
    assert Sizes(3000, 512, 7, 10**9).cells == 6
    # Every worker has as many partitions, if there are enough.
    numbers = [Sizes(16_000, 512, 7, 10**9, n).partitions(30, 20) for n in (1, 3, 8, 100)]
    assert numbers == [8, 9, 8, 8]


@given(
    st.integers(2000, 10**8),
    st.integers(16, 2048),
    st.integers(1, 7),
    st.integers(10**9, 10**11),
    st.integers(1, 5000),
)
def test_tasks_shrink_with_partitions(n_images, width, n_prompts, memory, n_partitions):
    whole = Sizes(n_images, width, n_prompts, memory, 4)
    some, more = (whole.divided(n, 30, 100) for n in (n_partitions, 2 * n_partitions))
    for own, other in ((some, whole), (more, some)):
        assert own.most_group_bytes <= other.most_group_bytes
        assert own.probability_bytes <= other.probability_bytes
        assert own.panel(n_images, n_images) <= other.panel(n_images, n_images)
        # What decides the result stays.
        assert (own.sample, own.cells, own.most_near) == (
            other.sample,
            other.cells,
            other.most_near,
        )
    assert more.most_group_bytes >= 0.4 * 2**28 - 1


def test_an_empty_cluster_gets_the_image_that_fits_worst(client, tmp_path):
    storage = Storage(str(tmp_path))
    axes = np.array([[1.0, 0], [1, 0.1], [0.1, 1], [0, 1], [0.8, 0.7]], np.float32)
    labels = np.array([0, 0, 2, 2, 0])
    starts = [0, 2, 5]
    for p, (a, b) in enumerate(pairwise(starts)):
        storage.write(f"axes/{p:05d}.npy", axes[a:b])
        storage.write(f"placed/{p:05d}.npy", labels[a:b])
        storage.write(f"sums/{p:05d}.npy", cluster_sums(unit_rows(axes[a:b]), labels[a:b], 3))
    graph = RowGraph(Engine(client, storage), "graph", starts, [])
    _fill_clusters(SimpleNamespace(graph=graph), np.bincount(labels))
    found = np.concatenate([storage.read(f"placed/{p:05d}.npy") for p in range(2)])
    assert found.tolist() == [0, 0, 2, 2, 1]
    sums = sum(storage.read(f"sums/{p:05d}.npy") for p in range(2))
    assert np.allclose(sums, cluster_sums(unit_rows(axes), found, 3))
