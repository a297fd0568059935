import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nouncut.compute.rows import principal_plane
from nouncut.report.positions import fitted, map_positions
from nouncut.runs.tables import images_table


@given(arrays(np.float64, st.tuples(st.integers(1, 9), st.just(2)), elements=st.floats(width=32)))
def test_every_place_is_in_the_square(places):
    inside = fitted(places)
    assert inside.shape == places.shape
    assert ((inside >= 0) & (inside <= 1)).all()


def test_the_shape_of_the_whole_is_kept():
    places = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 5.0]])
    assert fitted(places).tolist() == [[0.0, 0.25], [1.0, 0.25], [0.5, 0.75]]


@pytest.mark.parametrize("n_columns", [1, 2, 3, 12])
def test_the_plane_is_that_of_a_singular_value_decomposition(n_columns):
    rows = np.random.default_rng(0).normal(size=(50, n_columns)) * np.arange(n_columns, 0, -1)
    plane = principal_plane(rows)
    u, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    expected = (u * s)[:, :2]
    np.testing.assert_allclose(np.abs(plane[:, : expected.shape[1]]), np.abs(expected), atol=1e-9)


def test_a_run_without_arrays_has_no_map(tmp_path, write_run):
    assert map_positions(write_run(tmp_path, images_table(["/a.jpg", "/b.jpg"]), [0, 0])) is None


def test_an_embedding_serves_where_there_is_no_layout(small_run):
    positions = map_positions(small_run)
    assert positions.shape == (24, 2)
    assert len(np.unique(positions, axis=0)) == 3
