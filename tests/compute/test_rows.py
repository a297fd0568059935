from __future__ import annotations

import numpy as np
import pytest

from nouncut.compute.rows import label_matrix, unit_rows


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unit_rows_survive_extreme_lengths(scale, dtype):
    rows = unit_rows((np.array([[3.0, 4.0], [0.0, 0.0]]) * scale).astype(dtype))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert rows.dtype == dtype


@pytest.mark.parametrize("n_labels", [None, 5])
def test_label_matrix_marks_the_label_of_every_row(n_labels):
    labels = np.array([2, 0, 0, 2, 1])
    expected = np.eye(n_labels or 3)[labels]
    np.testing.assert_array_equal(label_matrix(labels, n_labels).toarray(), expected)
