from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import cpu_count, parallel_config
from scipy.sparse import csr_array, random_array

from nouncut.compute import memory as memory_module
from nouncut.compute.chebyshev import apply_functions
from nouncut.compute.memory import available_memory
from nouncut.compute.patterns import entries_in, with_entries
from nouncut.compute.products import sparse_product
from nouncut.compute.threads import count_threads, run_tasks


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (2000, 1500, 40)])
def test_sparse_product_equals_scipys(dtype, n_threads, shape):
    n, m, k = shape
    S = csr_array(random_array((n, m), density=0.05, rng=0, format="csr").astype(dtype))
    X = np.random.default_rng(0).normal(size=(k, m)).astype(dtype).T
    result = sparse_product(S, X, n_threads)
    np.testing.assert_allclose(result, S @ X, rtol=1e-4, atol=1e-5)
    assert result.dtype == dtype


def test_functions_of_a_matrix_equal_the_dense_ones():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 40))
    dense = (dense + dense.T) / 30
    values, vectors = np.linalg.eigh(dense)
    block = rng.normal(size=(40, 3))
    functions = [np.exp, lambda x: 1 / (2 - x)]
    found = apply_functions(functions, csr_array(dense), block, (values[0], values[-1]), tol=1e-12)
    for function, result in zip(functions, found, strict=True):
        np.testing.assert_allclose(result, vectors * function(values) @ vectors.T @ block)


def test_tasks_run_at_once():
    met = threading.Barrier(2, timeout=10)
    run_tasks(lambda _: met.wait(), range(2), n_threads=2)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_a_task_is_raised(n_threads):
    with pytest.raises(ZeroDivisionError):
        run_tasks(lambda x: 1 / x, [1, 0, 2], n_threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_can_use_threads():
    run_tasks(time.sleep, [0.0] * 4, n_threads=2)
    child = os.fork()
    if child == 0:
        run_tasks(time.sleep, [0.0] * 4, n_threads=2)
        os._exit(0)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the forked child waits for threads that it does not have")


def test_count_threads_follows_scikit_learn():
    assert count_threads(3) == 3
    assert count_threads(None) == 1
    assert count_threads(-1) == cpu_count()
    with parallel_config("threading", n_jobs=3):
        assert count_threads(None) == 3
    with pytest.raises(ValueError, match="n_jobs"):
        count_threads(0)


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    monkeypatch.setattr(memory_module, "_CGROUP", tmp_path)
    assert available_memory() == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() != 3000


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 12), seed=st.integers(0, 1000), n_threads=st.integers(1, 2))
def test_entries_in_a_pattern_are_those_of_the_dense_matrices(n, seed, n_threads):
    rng = np.random.default_rng(seed)
    pattern = csr_array((rng.random((n, n)) < 0.5).astype(float))
    dense = [rng.random((n, n)) * (rng.random((n, n)) < 0.4) for _ in range(3)]
    matrices = [csr_array(matrix) for matrix in dense]
    for matrix in matrices:  # In whatever order a product has left them.
        for row in range(n):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            matrix.indices[part] = matrix.indices[part][::-1]
            matrix.data[part] = matrix.data[part][::-1]
        matrix.has_sorted_indices = False
    found = entries_in(pattern, matrices, n_threads)
    for own, expected in zip(found, dense, strict=True):
        rebuilt = with_entries(pattern, own).toarray()
        np.testing.assert_array_equal(rebuilt, expected * (pattern.toarray() > 0))
