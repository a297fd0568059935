from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.compute.rows import unit_rows
from nouncut.method.kernel import noun_probabilities, ntk_kernel
from nouncut.method.neighbors import kernel_neighbors


def brute_force(kernel: np.ndarray, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort every row: largest first, ties by index, nothing that is not positive."""
    order = np.argsort(-kernel, axis=1, kind="stable")[:, :q]
    values = np.take_along_axis(kernel, order, axis=1)
    return np.where(values > 0, order, -1), np.maximum(values, 0)


@given(
    n_images=st.integers(2, 40),
    n_prompts=st.integers(0, 3),
    block_size=st.sampled_from([1, 3, 8, 64]),
    n_threads=st.sampled_from([1, 2]),
    seed=st.integers(0, 10_000),
    data=st.data(),
)
@settings(max_examples=80, deadline=None)
def test_neighbors_equal_brute_force(n_images, n_prompts, block_size, n_threads, seed, data):
    rng = np.random.default_rng(seed)
    q = data.draw(st.integers(1, n_images - 1))
    # Small whole numbers make every product exact, and ties and negatives common.
    features = rng.integers(-2, 3, size=(n_images, 3)).astype(np.float32)
    prompts = [rng.integers(0, 3, size=(n_images, 2)).astype(np.float32) for _ in range(n_prompts)]
    found = kernel_neighbors(features, prompts, q, block_size=block_size, n_threads=n_threads)
    assert len(found) == max(1, n_prompts)
    for prompt, (indices, values) in enumerate(found):
        semantic = prompts[prompt] @ prompts[prompt].T if prompts else 1
        kernel = (features @ features.T) * semantic
        np.fill_diagonal(kernel, -1)
        expected_indices, expected_values = brute_force(kernel, q)
        np.testing.assert_array_equal(indices, expected_indices)
        np.testing.assert_array_equal(values, expected_values)


def test_neighbors_of_other_images_may_be_anybody():
    rng = np.random.default_rng(0)
    features = unit_rows(rng.normal(size=(50, 6))).astype(np.float32)
    nouns = [unit_rows(rng.normal(size=(4, 6))).astype(np.float32)]
    probabilities = noun_probabilities(features, nouns, 0.2)
    queries = features[7:9], [probabilities[0][7:9]]
    (found,) = kernel_neighbors(features, probabilities, 5, queries=queries, block_size=16)
    kernel = ntk_kernel(features[7:9], probabilities[0][7:9], features, probabilities[0], tau=1.0)
    expected_indices, expected_values = brute_force(kernel, 5)
    np.testing.assert_array_equal(found.indices, expected_indices)
    np.testing.assert_allclose(found.values, expected_values, rtol=1e-5)
    assert {7, 8} <= set(found.indices[:, 0])


@pytest.mark.parametrize("block_size", [100, 333, 2000])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_neighbors_do_not_depend_on_blocks_or_threads(small_data, block_size, n_threads):
    probabilities = noun_probabilities(small_data.features, small_data.noun_features, 0.04)
    expected = kernel_neighbors(small_data.features, probabilities, 30)
    found = kernel_neighbors(
        small_data.features, probabilities, 30, block_size=block_size, n_threads=n_threads
    )
    for one, other in zip(expected, found, strict=True):
        assert np.mean(one.indices == other.indices) > 0.999
        np.testing.assert_allclose(one.values, other.values, rtol=1e-5)
