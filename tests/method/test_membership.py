from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from nouncut.compute.eigen import top_eigenpairs
from nouncut.compute.rows import unit_rows
from nouncut.errors import ParameterError
from nouncut.method.graphs import even_mean, neighbor_graph, normalize_graph, symmetrize_graph
from nouncut.method.labels import assign_labels, cluster_centers, nearest_center
from nouncut.method.membership import cluster_membership, membership_temperature, outliers
from nouncut.method.neighbors import kernel_neighbors
from nouncut.paper.synthetic import make_clip_like


def visual_graph(features):
    nearest = kernel_neighbors(features, [], 30)[0]
    return normalize_graph(symmetrize_graph(neighbor_graph(nearest, len(features))))[0]


def embedded(graph, n_clusters):
    vectors = top_eigenpairs(graph, n_clusters, random_state=0).vectors
    labels = assign_labels(vectors)
    directions = unit_rows(vectors)
    return directions, cluster_centers(directions, labels), labels


def rightly_placed(classes, labels):
    """Return which images are in the cluster that stands for their class."""
    table = np.zeros((classes.max() + 1, labels.max() + 1))
    np.add.at(table, (classes, labels), 1)
    rows, columns = linear_sum_assignment(-table)
    class_of = np.full(labels.max() + 1, -1)
    class_of[columns] = rows
    return class_of[labels] == classes


def calibration_error(confidence, right, n_bins=10):
    """Return the expected calibration error."""
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    return sum(
        abs(confidence[bins == b].sum() - right[bins == b].sum()) for b in range(n_bins)
    ) / len(right)


@pytest.mark.parametrize(
    ("n_images", "n_clusters", "separation", "nouns"),
    [
        (300, 5, 0.35, False),
        (480, 8, 0.35, False),
        (500, 10, 0.22, True),
        (720, 12, 0.35, False),
        (500, 20, 0.45, False),
        (500, 20, 0.25, True),
        (1200, 20, 0.35, False),
        (1000, 40, 0.35, True),
    ],
)
def test_confidence_is_the_share_of_rightly_placed_images(
    prompt_graphs, n_images, n_clusters, separation, nouns
):
    data = make_clip_like(n_images, n_clusters, separation=separation, n_prompts=3, random_state=11)
    graph = even_mean(prompt_graphs(data)) if nouns else visual_graph(data.features)
    directions, centers, _ = embedded(graph, n_clusters)
    found = cluster_membership(directions, centers)
    right = rightly_placed(data.labels, found.label)
    assert 0.7 <= right.mean() <= 0.99
    assert calibration_error(found.confidence, right) <= 0.18
    # Where the graph shows the classes, rather too cautious than too sure.
    assert found.confidence.mean() <= right.mean() + 0.03
    surest = np.argsort(-found.confidence)
    half = len(surest) // 2
    assert right[surest[:half]].mean() > right[surest[half:]].mean()


def test_the_second_choice_is_the_class_of_half_of_the_misplaced_images():
    data = make_clip_like(480, 8, separation=0.35, random_state=1)
    directions, centers, _ = embedded(visual_graph(data.features), 8)
    found = cluster_membership(directions, centers)
    table = np.zeros((8, 8))
    np.add.at(table, (data.labels, found.label), 1)
    class_of = np.empty(8, dtype=int)
    rows, columns = linear_sum_assignment(-table)
    class_of[columns] = rows
    wrong = class_of[found.label] != data.labels
    assert wrong.sum() > 10
    assert (class_of[found.second] == data.labels)[wrong].mean() > 0.5


@given(seed=st.integers(0, 10_000), n_clusters=st.integers(2, 9))
@settings(max_examples=40, deadline=None)
def test_probabilities_are_probabilities(seed, n_clusters):
    rng = np.random.default_rng(seed)
    directions = unit_rows(rng.normal(size=(30, n_clusters)))
    centers = unit_rows(rng.normal(size=(n_clusters, n_clusters)))
    found = cluster_membership(directions, centers)
    np.testing.assert_array_equal(found.label, nearest_center(directions, centers))
    assert np.all(found.second != found.label)
    assert np.all(found.second_confidence >= 0)
    assert np.all(found.confidence >= found.second_confidence)
    assert np.all(found.confidence >= 1 / n_clusters - 1e-12)
    assert np.all(found.confidence + found.second_confidence <= 1 + 1e-12)


def test_a_softmax_by_hand():
    found = cluster_membership(np.array([[0.8, 0.6, 0.0]]), np.eye(3), temperature=0.5)
    weights = np.exp(np.array([0.8, 0.6, 0.0]) / 0.5)
    np.testing.assert_allclose(found.confidence, weights[0] / weights.sum())
    np.testing.assert_allclose(found.second_confidence, weights[1] / weights.sum())


def test_given_labels_keep_their_own_confidence():
    rows = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0]])
    found = cluster_membership(rows, np.eye(3), labels=np.array([0, 1]), temperature=0.2)
    np.testing.assert_array_equal(found.label, [0, 1])
    np.testing.assert_array_equal(found.second, [1, 0])
    assert found.confidence[1] < found.second_confidence[1]


def test_one_cluster_has_no_second_choice():
    found = cluster_membership(np.array([[1.0], [-1.0], [0.0]]), np.array([[1.0]]))
    np.testing.assert_array_equal(found.label, [0, 0, 0])
    np.testing.assert_array_equal(found.confidence, [1, 1, 1])
    np.testing.assert_array_equal(found.second, [-1, -1, -1])
    np.testing.assert_array_equal(found.second_confidence, [0, 0, 0])


def test_an_image_without_a_direction_could_be_anywhere():
    rows = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.6], [0.0, 0.0, 0.0]])
    found = cluster_membership(unit_rows(rows), np.eye(3))
    assert (found.label[2], found.second[2]) == (0, 1)
    assert found.confidence[2] == pytest.approx(1 / 3)
    assert found.second_confidence[2] == pytest.approx(1 / 3)
    assert membership_temperature(unit_rows(rows), np.eye(3)) == pytest.approx(
        membership_temperature(unit_rows(rows[:2]), np.eye(3))
    )


def test_ties_go_to_the_first_cluster():
    found = cluster_membership(unit_rows(np.array([[0.0, 1.0, 1.0]])), np.eye(3))
    assert (found.label[0], found.second[0]) == (1, 2)
    assert found.confidence[0] == found.second_confidence[0] <= 0.5


@pytest.mark.parametrize("rows", [np.zeros((4, 3)), np.eye(3), -np.eye(3), np.empty((0, 3))])
def test_a_temperature_is_found_for_degenerate_directions(rows):
    temperature = membership_temperature(rows, np.eye(3))
    assert 1e-3 <= temperature <= 1e3
    assert np.all(np.isfinite(cluster_membership(rows, np.eye(3)).confidence))


def test_crisper_clusters_have_a_lower_temperature():
    crisp = unit_rows(np.array([[1.0, 0.1], [0.1, 1.0]]))
    vague = unit_rows(np.array([[1.0, 0.7], [0.7, 1.0]]))
    assert membership_temperature(crisp, np.eye(2)) < membership_temperature(vague, np.eye(2))


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_must_be_positive(temperature):
    with pytest.raises(ParameterError, match="`temperature` must be a number above 0"):
        cluster_membership(np.eye(2), np.eye(2), temperature=temperature)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_strangers_are_found_and_few_others(seed):
    data = make_clip_like(600, 10, separation=0.45, random_state=seed)
    strangers = unit_rows(np.random.default_rng(seed).normal(size=(15, 512)))
    graph = visual_graph(np.vstack([data.features, strangers]).astype(np.float32))
    found = outliers(graph, embedded(graph, 10)[2])
    assert np.sum(found >= 600) >= 14
    assert np.sum(found < 600) <= 0.04 * 600


def test_fewer_deviations_make_more_outliers():
    data = make_clip_like(300, 5, separation=0.35, random_state=0)
    graph = visual_graph(data.features)
    labels = embedded(graph, 5)[2]
    strict, lax = (set(outliers(graph, labels, n).tolist()) for n in (3.0, 1.5))
    assert strict < lax


def test_an_image_between_two_clusters_fits_neither():
    weights = np.kron(np.eye(2), np.ones((10, 10)))
    weights = np.pad(weights, (0, 1))
    weights[20, :20] = weights[:20, 20] = 0.6
    labels = np.array([0] * 10 + [1] * 11)
    np.testing.assert_array_equal(outliers(csr_array(weights), labels), [20])


def test_images_without_edges_are_outliers():
    weights = np.pad(np.ones((8, 8)), (0, 2))
    np.testing.assert_array_equal(outliers(csr_array(weights), np.zeros(10, dtype=int)), [8, 9])
    np.testing.assert_array_equal(outliers(csr_array((3, 3)), np.zeros(3, dtype=int)), [0, 1, 2])


def test_images_that_fit_alike_are_no_outliers():
    same = normalize_graph(csr_array(np.kron(np.eye(3), np.ones((7, 7)))))[0]
    assert not len(outliers(same, np.repeat([0, 1, 2], 7)))


def test_a_sample_settles_the_temperature_of_many_images():
    rng = np.random.default_rng(0)
    directions = unit_rows(np.eye(4)[rng.integers(0, 4, 12_000)] + 0.4 * rng.random((12_000, 4)))
    assert membership_temperature(directions, np.eye(4)) == pytest.approx(
        membership_temperature(directions[:4000], np.eye(4)), rel=0.02
    )
