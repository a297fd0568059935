from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from nouncut.method import search as search_module
from nouncut.method.candidates import candidate_pairs, near_blocks, noun_factors
from nouncut.method.kernel import Kernel, noun_probabilities
from nouncut.method.neighbors import kernel_neighbors
from nouncut.method.search import (
    candidates_needed,
    mean_prompt,
    noun_parts,
    query_neighbors,
    search_neighbors,
)
from nouncut.paper.synthetic import make_clip_like

TAU, Q = 0.04, 20


@pytest.fixture(scope="module")
def data():
    return make_clip_like(1500, 30, n_nouns=400, n_prompts=3, separation=0.45, random_state=0)


@pytest.fixture(scope="module")
def truth(data):
    probabilities = noun_probabilities(data.features, data.noun_features, TAU)
    return kernel_neighbors(data.features, probabilities, Q)


def recall(found, truth) -> float:
    pairs = zip(found.indices, truth.indices, strict=True)
    return float(np.mean([np.isin(true, own).mean() for own, true in pairs]))


def search(data, **options):
    kernel = Kernel(data.features, data.features, data.noun_features, TAU)
    return search_neighbors(kernel, Q, **options)


@pytest.mark.parametrize("method", ["candidates", "cells"])
def test_candidates_hold_the_true_neighbors(data, truth, method):
    found = search(data, method=method)
    assert found.method == method
    recalls = [recall(own, true) for own, true in zip(found.neighbors, truth, strict=True)]
    assert np.mean(recalls) >= 0.995
    # The search measures its recall on some images only.
    assert abs(found.recall - np.mean(recalls)) < 0.01


def test_values_of_candidates_are_those_of_the_kernel(data, truth):
    found = search(data, method="candidates")
    for own, true in zip(found.neighbors, truth, strict=True):
        same = own.indices == true.indices
        assert same.mean() > 0.99
        np.testing.assert_allclose(own.values[same], true.values[same], rtol=1e-3)


@pytest.mark.parametrize("method", ["candidates", "cells"])
def test_candidates_do_not_depend_on_threads(data, method):
    one, two = (search(data, method=method, n_threads=n) for n in (1, 2))
    for left, right in zip(one.neighbors, two.neighbors, strict=True):
        np.testing.assert_array_equal(left.indices, right.indices)
        np.testing.assert_array_equal(left.values, right.values)


def test_auto_is_exact_for_few_images_and_says_so(data, truth, monkeypatch):
    found = search(data)
    assert (found.method, found.recall) == ("exact", 1.0)
    for own, true in zip(found.neighbors, truth, strict=True):
        np.testing.assert_array_equal(own.indices, true.indices)
    monkeypatch.setattr(search_module, "_BRUTE_FORCE", 0)
    assert search(data).method == "candidates"
    monkeypatch.setattr(search_module, "_CELLS_FROM", 1000)
    assert search(data).method == "cells"


def test_candidates_without_nouns_are_the_neighbors(data):
    found = search_neighbors(Kernel(data.features, data.features), Q, method="candidates")
    (true,) = kernel_neighbors(data.features, [], Q)
    # Sums in another order may swap images that are equally near.
    assert recall(found.neighbors[0], true) > 0.9999
    assert found.recall > 0.999


def test_progress_is_told(data):
    told = []
    search(data, method="candidates", progress=lambda *what: told.append(what))
    assert {stage for stage, _, _ in told} == {"finding neighbours", "evaluating prompts"}
    assert told[-1] == ("evaluating prompts", 3, 3)


def test_factors_of_full_rank_are_exact(data):
    factors = noun_factors(data.features, data.noun_features[0], TAU, rank=400)
    exact = noun_probabilities(data.features, data.noun_features[:1], TAU)[0]
    np.testing.assert_allclose(factors @ factors.T, exact @ exact.T, rtol=1e-4)


def test_every_pair_comes_once(data, truth):
    pairs = candidate_pairs(truth[0].indices).toarray()
    chosen = np.zeros((1500, 1500), dtype=bool)
    chosen[np.repeat(np.arange(1500), Q), truth[0].indices.ravel()] = True
    np.testing.assert_array_equal(pairs, np.triu(chosen | chosen.T))


def test_cells_cover_all_images_and_blocks_come_once(data):
    order, blocks = near_blocks(data.features, [], cell_size=50)
    np.testing.assert_array_equal(np.sort(order), np.arange(1500))
    keys = [(rows.start, columns.start) for rows, columns in blocks]
    assert len(set(keys)) == len(keys)
    assert sum(r.stop - r.start for r, c in blocks if r == c) == 1500


def test_queries_equal_the_search_with_everything_in_memory(data, monkeypatch):
    monkeypatch.setattr(search_module, "_QUERIES_AT_ONCE", 40)
    features, new = data.features[:1400], data.features[1400:]
    kernel = Kernel(features, features, data.noun_features, TAU)
    found = query_neighbors(kernel, Q, new, new, n_threads=2)
    probabilities, own = (
        noun_probabilities(rows, data.noun_features, TAU) for rows in (features, new)
    )
    expected = kernel_neighbors(features, probabilities, Q, queries=(new, own))
    for left, right in zip(found, expected, strict=True):
        assert np.mean(left.indices == right.indices) > 0.999
        np.testing.assert_allclose(left.values, right.values, rtol=1e-5)


@pytest.mark.parametrize("share", [0, 0.1, 0.5])
def test_little_memory_changes_only_the_time(share):
    data = make_clip_like(600, 10, n_nouns=60, n_prompts=2, separation=0.45, random_state=0)
    max_bytes = share * 2 * data.features.shape[0] * len(data.noun_features[0])
    all_at_once = search(data, method="candidates")
    in_parts = search(data, method="candidates", max_bytes=max_bytes)
    for left, right in zip(all_at_once.neighbors, in_parts.neighbors, strict=True):
        assert np.mean(left.indices == right.indices) > 0.999
        np.testing.assert_allclose(left.values, right.values, rtol=1e-4)


def test_without_memory_for_brute_force_auto_uses_candidates(data):
    assert search(data, max_bytes=10**6).method == "candidates"


def test_a_search_that_misses_neighbors_is_repeated_with_more_candidates(data, monkeypatch):
    asked = []

    def few(kernel, factors, q, effort, n_threads):
        asked.append(effort)
        # With hardly any candidates of their own the prompts' neighbours are missed.
        return 1

    monkeypatch.setattr(search_module, "_choose_candidates", few)
    with pytest.warns(UserWarning, match="of the nearest images"):
        found = search(data, method="candidates")
    assert asked == [1, 4]
    assert found.recall < 0.99


def test_cells_that_miss_neighbors_give_way_to_all_pairs(monkeypatch):
    """Many small classes: with fewer cells than classes, alike images end up in different cells."""
    data = make_clip_like(3000, 150, n_prompts=2, separation=0.5, random_state=0)
    few_cells = partial(near_blocks, cell_size=100, fewest_near=2)
    monkeypatch.setattr(search_module, "near_blocks", few_cells)
    found = search(data, method="cells", n_threads=2)
    assert found.method == "candidates"
    assert found.recall >= 0.99


def test_a_sample_tells_how_many_candidates_the_whole_collection_needs():
    needed = []
    for seed in range(3):
        made = make_clip_like(6000, 30, n_nouns=120, n_prompts=2, dim=64, random_state=seed)
        factors = noun_factors(made.features, mean_prompt(made.noun_features), TAU)

        def candidates(step, made=made, factors=factors):
            rows = made.features[::step]
            kernel = Kernel(rows, rows, list(made.noun_features), TAU)
            return candidates_needed(
                kernel, factors[::step], Q, 256, found=0.995, share=1 / step
            ).number

        needed.append([candidates(step) for step in (1, 2, 4)])
    ratios = np.array(needed) / np.array(needed)[:, :1]
    assert np.abs(np.log2(ratios)).max() < 1.5
    assert np.abs(np.log2(ratios)).mean() < 0.75


def test_overlaps_can_be_those_with_the_first_images(data):
    kernel, checked = Kernel(data.features, data.features, data.noun_features, TAU), np.arange(9)
    every, first = (
        [overlaps.copy() for _, overlaps in noun_parts(kernel, 0, checked, np.inf, 1, n)]
        for n in (None, 700)
    )
    # Matrix products of other widths round otherwise on some processors.
    np.testing.assert_allclose(every[0][:, :700], first[0], rtol=1e-5, atol=1e-7)
