from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array

from nouncut import NTKSpectralClustering
from nouncut.layout.discs import pack_discs, rounded_clusters
from nouncut.layout.images import layout_images
from nouncut.layout.repulsion import repel
from nouncut.layout.start import neighbor_pulls
from nouncut.paper.synthetic import make_clip_like


@pytest.fixture(scope="module")
def fitted() -> NTKSpectralClustering:
    data = make_clip_like(400, 5, n_nouns=9, n_prompts=1, separation=0.6, random_state=0)
    return NTKSpectralClustering(5, n_neighbors=15, random_state=0).fit(data.features)


def blocks(sizes: list[int]) -> tuple[np.ndarray, csr_array, np.ndarray]:
    """Return complete graphs side by side, with the embedding they have."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    graph = csr_array(block_diag([np.ones((n, n)) / n - np.eye(n) / n for n in sizes]))
    graph.eliminate_zeros()
    return np.eye(len(sizes))[labels], graph, labels


def nearest(points: np.ndarray, count: int) -> np.ndarray:
    distances = ((points[:, None] - points) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1)[:, :count]


def check(places: np.ndarray, n: int) -> None:
    assert places.shape == (n, 2)
    assert places.dtype == np.float32
    assert np.isfinite(places).all()
    assert places.min(initial=0.5) >= 0
    assert places.max(initial=0.5) <= 1


@pytest.mark.parametrize("seed", [0, 1])
def test_neighbours_are_near_and_clusters_apart(fitted, seed):
    places = layout_images(fitted.embedding_, fitted.graph_, fitted.labels_, random_state=seed)
    check(places, 400)
    near = nearest(places, 10)
    assert np.mean(fitted.labels_[near] == fitted.labels_[:, None]) > 0.97
    is_edge = fitted.graph_.toarray() > 0
    # One in twenty pairs is an edge.
    assert np.take_along_axis(is_edge, near, axis=1).mean() > 0.5


def test_both_axes_are_filled(fitted):
    places = layout_images(fitted.embedding_, fitted.graph_, fitted.labels_)
    assert np.ptp(places, axis=0).min() > 0.8
    occupied = np.histogram2d(*places.T, bins=4, range=[[0, 1], [0, 1]])[0] > 0
    assert occupied.sum() >= 12


def test_the_map_depends_on_the_seed_only(fitted):
    arguments = fitted.embedding_, fitted.graph_, fitted.labels_
    first = layout_images(*arguments, random_state=3, n_threads=1)
    np.testing.assert_array_equal(first, layout_images(*arguments, random_state=3, n_threads=3))
    assert not np.array_equal(first, layout_images(*arguments, random_state=4))


def test_progress_is_told(fitted):
    steps = []
    layout_images(
        fitted.embedding_,
        fitted.graph_,
        fitted.labels_,
        progress=lambda *step: steps.append(step),
    )
    assert steps[-1][1] == steps[-1][2] == len(steps)


@pytest.mark.parametrize(
    "sizes",
    [[], [1], [2], [1, 1], [3], [40], [1, 1, 1, 1, 1], [30, 1, 1], [200, 10, 3, 1], [2] * 60],
    ids=str,
)
def test_sizes_of_all_kinds(sizes):
    if not sizes:
        places = layout_images(np.empty((0, 1)), csr_array((0, 0)), np.empty(0, dtype=int))
    else:
        places = layout_images(*blocks(sizes))
    check(places, sum(sizes))
    if sum(sizes) > 1:
        assert len(np.unique(places, axis=0)) == sum(sizes)


def test_a_thousand_clusters():
    embedding, graph, labels = blocks([3] * 1000)
    places = layout_images(embedding, graph, labels)
    check(places, 3000)
    assert np.mean(labels[nearest(places, 2)] == labels[:, None]) > 0.9


def test_copies_of_one_image_are_spread():
    places = layout_images(*blocks([50]))
    assert len(np.unique(places, axis=0)) == 50


def test_images_without_edges_stay_with_their_cluster():
    embedding, graph, labels = blocks([20, 20])
    keep = np.ones(40)
    keep[[0, 25]] = 0
    graph = csr_array(graph.multiply(keep[:, None]).multiply(keep))
    graph.eliminate_zeros()
    places = layout_images(embedding, graph, labels)
    check(places, 40)
    assert (labels[nearest(places, 5)] == labels[:, None]).mean() > 0.95


def test_no_edges_at_all():
    check(layout_images(np.ones((6, 1)), csr_array((6, 6)), np.zeros(6, dtype=int)), 6)


def test_labels_need_not_be_consecutive():
    embedding, graph, labels = blocks([8, 8])
    check(layout_images(embedding, graph, labels * 7), 16)


def test_every_image_gives_the_same():
    embedding, graph, labels = blocks([10, 5])
    pulls = neighbor_pulls(embedding, graph, labels)
    np.testing.assert_allclose(pulls.sum(axis=1), 2)
    assert abs(pulls - pulls.T).max() == 0


@pytest.mark.parametrize(("n", "scale"), [(2, 1.0), (50, 1e-3), (300, 3.0), (1500, 8.0)])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_repulsion_against_all_pairs(n, scale, n_threads):
    points = (scale * np.random.default_rng(0).normal(size=(n, 2))).astype(np.float32)
    apart = points[:, None].astype(float) - points
    kernel = 1 / (1 + (apart**2).sum(axis=2))
    forces = (kernel[..., None] ** 2 * apart).sum(axis=1)
    found = repel(points, n_threads)
    assert np.linalg.norm(found.forces - forces) < 0.02 * np.linalg.norm(forces)
    assert found.total == pytest.approx(kernel.sum() - n, rel=0.01)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.5, 20), min_size=1, max_size=40),
    st.integers(0, 2**31 - 1),
    st.sampled_from([0.0, 1.0, 100.0]),
)
def test_discs_do_not_overlap(radii, seed, spread):
    radii = np.array(radii)
    rng = np.random.default_rng(seed)
    packed = pack_discs(spread * rng.normal(size=(len(radii), 2)), radii)
    assert np.isfinite(packed).all()
    distances = np.linalg.norm(packed[:, None] - packed, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (distances - radii[:, None] - radii).min() > -0.1 * radii.min()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**31 - 1), st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
def test_rounded_clusters_are_in_their_discs(n, seed, scale):
    rng = np.random.default_rng(seed)
    labels = np.unique(rng.integers(0, 5, n), return_inverse=True)[1]
    centers, offsets = rounded_clusters(scale * rng.normal(size=(n, 2)), labels)
    assert len(centers) == labels.max() + 1
    assert np.linalg.norm(offsets, axis=1).max() <= 1 + 1e-9
