"""Images seen through words: what words cannot tell must not show."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from nouncut.compute.rows import unit_rows
from nouncut.runs.collection import view_by_words

seeds = st.integers(0, 2**32 - 1)
DIM = 12


def sample(seed, n_words):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(9, DIM)), unit_rows(rng.normal(size=(n_words, DIM)))


def products(semantic, words):
    seen = view_by_words(semantic, words)(unit_rows(semantic)).astype(np.float64)
    return seen @ seen.T


def complement(words):
    """Return orthonormal directions in which the words do not differ."""
    _, values, basis = np.linalg.svd(words - words.mean(axis=0))
    return basis[np.sum(values > 1e-9) :]


@settings(deadline=None)
@given(seeds, st.integers(2, 8))
def test_turning_images_where_words_do_not_differ_changes_nothing(seed, n_words):
    rng, images, words = sample(seed, n_words)
    free = complement(words)
    turn, _ = np.linalg.qr(rng.normal(size=(len(free), len(free))))
    turned = images - images @ free.T @ free + images @ free.T @ turn @ free
    assert_allclose(products(turned, words), products(images, words), atol=1e-5)


@settings(deadline=None)
@given(seeds, st.integers(2, 8))
def test_the_length_of_vectors_says_nothing(seed, n_words):
    rng, images, words = sample(seed, n_words)
    longer = images * rng.uniform(0.5, 9, (len(images), 1))
    wider = words * rng.uniform(0.5, 9, (n_words, 1))
    assert_allclose(products(longer, wider), products(images, words), atol=1e-5)


@settings(deadline=None)
@given(seeds, st.integers(2, 8))
def test_neither_order_nor_repetition_of_words_counts(seed, n_words):
    rng, images, words = sample(seed, n_words)
    said = words[np.r_[rng.permutation(n_words), rng.integers(0, n_words, 3)]]
    assert_allclose(products(images, said), products(images, words), atol=1e-5)


@settings(deadline=None)
@given(seeds)
def test_words_in_all_directions_leave_images_as_they_are_but_centred(seed):
    rng, images, _ = sample(seed, 2)
    words = unit_rows(rng.normal(size=(4 * DIM, DIM)))
    centred = unit_rows(images) - unit_rows(images).mean(axis=0)
    assert_allclose(products(images, words), centred @ centred.T, atol=1e-5)


@settings(deadline=None)
@given(seeds, st.integers(2, 8))
def test_images_that_no_word_tells_apart_look_the_same(seed, n_words):
    rng, _, words = sample(seed, n_words)
    free = complement(words)
    images = unit_rows(rng.normal(size=(9, len(free))) @ free)
    assert np.abs(products(images, words)).max() < 1e-5


def test_one_word_tells_nothing_apart_but_gives_a_view():
    images = np.random.default_rng(0).normal(size=(5, DIM))
    view = view_by_words(images, np.eye(1, DIM))
    assert view(images).shape == (5, 1)
    assert np.isfinite(view(images)).all()


@settings(deadline=None)
@given(seeds, st.integers(1, DIM))
def test_many_words_give_the_axes_of_a_full_decomposition(seed, rank):
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(9, DIM))
    words = rng.normal(size=(40, rank)) @ rng.normal(size=(rank, DIM))
    directions = unit_rows(words) - unit_rows(words).mean(axis=0)
    _, values, axes = np.linalg.svd(directions, full_matrices=False)
    seen = (unit_rows(images) - unit_rows(images).mean(axis=0)) @ axes[values > 1e-5 * values[0]].T
    assert_allclose(products(images, words), seen @ seen.T, atol=1e-4)
