from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.layout.discs import pack_discs, rounded_clusters


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


def test_discs_keep_their_arrangement():
    corners = np.array([[0, 0], [50, 0], [0, 50], [50, 50]])
    packed = pack_discs(corners, np.ones(4))
    np.testing.assert_array_equal(np.sign(packed), np.sign(corners - 25))
    # Close together: 62 % of the square is covered.
    assert np.abs(packed).max() < 1.5


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**31 - 1), st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
def test_offsets_lie_in_the_unit_disc(n, seed, scale):
    rng = np.random.default_rng(seed)
    labels = np.unique(rng.integers(0, 5, n), return_inverse=True)[1]
    centers, offsets = rounded_clusters(scale * rng.normal(size=(n, 2)), labels)
    assert len(centers) == labels.max() + 1
    assert np.linalg.norm(offsets, axis=1).max() <= 1 + 1e-9


def test_long_clusters_become_rounder():
    long = np.random.default_rng(0).normal(size=(500, 2)) * [9, 1]
    _, offsets = rounded_clusters(long, np.zeros(500, dtype=np.intp))
    spread = offsets.std(axis=0)
    assert 1 < spread[0] / spread[1] < 2
