from __future__ import annotations

import numpy as np
import pytest

from nouncut.layout.repulsion import repel_on_grid, repel_pairs


@pytest.mark.parametrize(("n", "scale"), [(2, 1.0), (50, 1e-3), (300, 3.0), (1500, 8.0)])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("repel", [repel_pairs, repel_on_grid])
def test_repulsion_equals_the_sum_over_all_pairs(n, scale, n_threads, repel):
    points = (scale * np.random.default_rng(0).normal(size=(n, 2))).astype(np.float32)
    offsets = points[:, None].astype(float) - points
    kernel = 1 / (1 + (offsets**2).sum(axis=2))
    forces = (kernel[..., None] ** 2 * offsets).sum(axis=1)
    found = repel(points, n_threads)
    assert np.linalg.norm(found.forces - forces) < 0.02 * np.linalg.norm(forces)
    assert found.total == pytest.approx(kernel.sum() - n, rel=0.01)
