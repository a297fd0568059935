from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from sklearn.datasets import make_blobs
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from nouncut.compute.eigen import top_eigenpairs
from nouncut.compute.rows import unit_rows
from nouncut.layout.map import map_images

# Five clusters of different sizes in a chain; each touches the one before it.
CHAIN = np.array([[0, 0, 0], [4, 0, 0], [4, 4, 0], [4, 4, 4], [8, 4, 4]])
SIZES = (160, 120, 80, 40, 20)
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return make_blobs(SIZES, centers=CHAIN, cluster_std=1.0, random_state=0)[0]


@pytest.fixture(scope="module")
def clustering(points) -> tuple[np.ndarray, csr_array, np.ndarray]:
    """Return the embedding, the normalised graph and the labels of the chain."""
    labels = ((points[:, None] - CHAIN) ** 2).sum(axis=2).argmin(axis=1)
    weights = kneighbors_graph(points, 15)
    weights = csr_array((weights + weights.T) / 2)
    scale = 1 / np.sqrt(weights.sum(axis=1))
    graph = csr_array(weights.multiply(scale[:, None]).multiply(scale))
    return unit_rows(top_eigenpairs(graph, len(CHAIN)).vectors), graph, labels


@pytest.fixture(scope="module")
def maps(clustering) -> dict[int, np.ndarray]:
    return {seed: map_images(*clustering, random_state=seed) for seed in SEEDS}


def complete_graphs(sizes: list[int]) -> tuple[np.ndarray, csr_array, np.ndarray]:
    """Return the embedding, the graph and the labels of complete graphs without edges between."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    graph = csr_array(block_diag([np.ones((n, n)) / n - np.eye(n) / n for n in sizes]))
    graph.eliminate_zeros()
    return np.eye(len(sizes))[labels], graph, labels


def nearest(positions: np.ndarray, count: int) -> np.ndarray:
    search = NearestNeighbors(n_neighbors=count).fit(positions)
    return search.kneighbors(return_distance=False)


def gaps(positions: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the free space between the circles around every two clusters, and their radii."""
    members = [positions[labels == label] for label in np.unique(labels)]
    centers = np.array([np.median(rows, axis=0) for rows in members])
    radii = np.array(
        [
            np.linalg.norm(rows - center, axis=1).max()
            for rows, center in zip(members, centers, strict=True)
        ]
    )
    distances = np.linalg.norm(centers[:, None] - centers, axis=2)
    return distances - radii[:, None] - radii, radii


def check_range(positions: np.ndarray, n: int) -> None:
    assert positions.shape == (n, 2)
    assert positions.dtype == np.float32
    assert np.isfinite(positions).all()
    assert positions.min(initial=0.5) >= 0
    assert positions.max(initial=0.5) <= 1


# The limits below are a little weaker than the worst of eight seeds.


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_on_the_map_are_neighbours_in_the_graph(points, clustering, maps, seed):
    _, graph, labels = clustering
    check_range(maps[seed], len(labels))
    near = nearest(maps[seed], 10)
    edges = graph[np.repeat(np.arange(len(labels)), 10), near.ravel()]
    # One pair of images in 25 is an edge.
    assert np.mean(edges > 0) > 0.62
    assert trustworthiness(points, maps[seed], n_neighbors=10) > 0.95
    assert (labels[near] == labels[:, None]).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_do_not_overlap_and_have_areas_like_their_sizes(clustering, maps, seed):
    labels = clustering[2]
    between, radii = gaps(maps[seed], labels)
    assert between[~np.eye(len(CHAIN), dtype=bool)].min() > 0.1
    areas = radii**2 / np.bincount(labels)
    assert areas.max() < 1.4 * areas.min()


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_with_edges_between_them_are_close(clustering, maps, seed):
    between, _ = gaps(maps[seed], clustering[2])
    steps = np.abs(np.subtract.outer(range(len(CHAIN)), range(len(CHAIN))))
    assert between[steps == 1].mean() < 0.7 * between[steps > 1].mean()


def test_both_axes_are_filled(maps):
    assert np.ptp(maps[0], axis=0).min() > 0.8
    occupied = np.histogram2d(*maps[0].T, bins=4, range=[[0, 1], [0, 1]])[0] > 0
    assert occupied.sum() >= 12


def test_the_map_depends_on_the_seed_but_not_on_the_threads(clustering, maps):
    np.testing.assert_array_equal(maps[0], map_images(*clustering, n_threads=2))
    assert not np.array_equal(maps[0], maps[1])


def test_progress_counts_the_steps():
    steps = []
    map_images(*complete_graphs([4, 3]), progress=lambda *step: steps.append(step))
    assert [done for _, done, _ in steps] == list(range(1, len(steps) + 1))
    assert {total for *_, total in steps} == {len(steps)}


@pytest.mark.parametrize(
    "sizes", [[1], [2], [1, 1], [40], [1, 1, 1, 1, 1], [200, 10, 3, 1], [2] * 60], ids=str
)
def test_cluster_sizes(sizes):
    embedding, graph, labels = complete_graphs(sizes)
    positions = map_images(embedding, graph, labels)
    check_range(positions, sum(sizes))
    # Images of one cluster are all neighbours, like copies of one image; they do not coincide.
    assert len(np.unique(positions, axis=0)) == sum(sizes)
    between, _ = gaps(positions, labels)
    assert (between[~np.eye(len(sizes), dtype=bool)] > 0).all()


def test_no_images():
    positions = map_images(np.empty((0, 1)), csr_array((0, 0)), np.empty(0, dtype=int))
    check_range(positions, 0)


def test_hundreds_of_clusters():
    embedding, graph, labels = complete_graphs([3] * 400)
    positions = map_images(embedding, graph, labels)
    check_range(positions, 1200)
    assert np.mean(labels[nearest(positions, 2)] == labels[:, None]) > 0.99


def test_images_without_edges_stay_with_their_cluster():
    embedding, graph, labels = complete_graphs([20, 20])
    keep = np.ones(40)
    keep[[0, 25]] = 0
    graph = csr_array(graph.multiply(keep[:, None]).multiply(keep))
    graph.eliminate_zeros()
    positions = map_images(embedding, graph, labels)
    assert (labels[nearest(positions, 5)] == labels[:, None]).all()


def test_a_graph_without_edges():
    positions = map_images(np.ones((6, 1)), csr_array((6, 6)), np.zeros(6, dtype=int))
    check_range(positions, 6)
    assert np.ptp(positions, axis=0).max() == 1
    assert len(np.unique(positions, axis=0)) == 6


def test_labels_need_not_be_consecutive():
    embedding, graph, labels = complete_graphs([8, 5])
    np.testing.assert_array_equal(
        map_images(embedding, graph, 7 * labels), map_images(embedding, graph, labels)
    )
