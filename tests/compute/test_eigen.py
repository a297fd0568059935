from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from sklearn.exceptions import ConvergenceWarning

from nouncut.compute import eigen as eigen_module
from nouncut.compute import iteration
from nouncut.compute.eigen import spectrum_floor, top_eigenpairs
from nouncut.method.graphs import even_mean, normalize_graph
from nouncut.paper.synthetic import make_clip_like


@pytest.fixture(scope="module")
def graph(prompt_graphs) -> csr_array:
    data = make_clip_like(900, 12, n_prompts=3, separation=0.2, random_state=0)
    return even_mean(prompt_graphs(data))


@pytest.fixture(scope="module")
def spectrum(graph) -> tuple[np.ndarray, np.ndarray]:
    return np.linalg.eigh(graph.toarray())


@pytest.fixture(scope="module")
def crowded() -> tuple[csr_array, np.ndarray]:
    """Return a graph of six groups, and its eigenvalues: after the sixth they are crowded."""
    rng = np.random.default_rng(0)
    group = np.arange(1500) % 6
    alike = rng.random((1500, 1500)) < np.where(group[:, None] == group, 0.06, 0.005)
    graph = normalize_graph(csr_array((alike | alike.T).astype(float)))[0]
    return graph, np.linalg.eigvalsh(graph.toarray())[::-1]


@pytest.mark.parametrize("k", [1, 12, 40])
def test_block_solver_equals_the_dense_one(graph, spectrum, k):
    values, vectors = spectrum
    found = top_eigenpairs(graph, k, random_state=0)
    np.testing.assert_allclose(found.values, values[::-1][:k], atol=1e-10)
    cosines = np.linalg.svd(vectors[:, ::-1][:, :k].T @ found.vectors)[1]
    assert cosines.min() > 1 - 1e-8
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-10)


def test_repeated_eigenvalues_are_all_found():
    """Twenty equal components: a single-vector Lanczos method sees one vector for all of them."""
    rng = np.random.default_rng(0)
    block = rng.random((30, 30))
    component = normalize_graph(csr_array(block + block.T - np.diag(2 * np.diag(block))))[0]
    graph = csr_array(block_diag([component] * 20))
    found = top_eigenpairs(graph, 20, random_state=0)
    np.testing.assert_allclose(found.values, 1, atol=1e-9)


def test_a_warm_start_saves_rounds(graph):
    rounds = {"cold": 0, "warm": 0}

    def count(name, *_):
        rounds[name] += 1

    cold = top_eigenpairs(graph, 12, random_state=0, progress=partial(count, "cold"))
    warm = top_eigenpairs(graph, 12, start=cold, random_state=1, progress=partial(count, "warm"))
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-9)
    assert rounds["warm"] < rounds["cold"]


def test_what_has_not_converged_is_said(graph, monkeypatch):
    monkeypatch.setattr(iteration, "_MAX_ROUNDS", 1)
    with pytest.warns(ConvergenceWarning, match="residuals up to"):
        top_eigenpairs(graph, 40, random_state=0)


def test_threads_change_nothing(graph):
    one, two = (top_eigenpairs(graph, 12, random_state=0, n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.vectors, two.vectors)


def test_spectrum_floor_is_a_lower_bound(graph, spectrum):
    lowest = spectrum[0][0]
    assert -1 <= spectrum_floor(graph) <= lowest
    assert lowest - spectrum_floor(graph) < 0.1


def test_single_precision_finds_the_same_space(graph, spectrum):
    """A tolerance of 1e-4 is met in float32; the space and the values must not suffer."""
    values, vectors = spectrum
    found, again = (
        top_eigenpairs(graph, 12, tol=1e-4, random_state=0, n_threads=n) for n in (1, 2)
    )
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, again.vectors)
    np.testing.assert_allclose(found.values, values[::-1][:12], atol=1e-5)
    assert np.linalg.svd(vectors[:, ::-1][:, :12].T @ found.vectors)[1].min() > 1 - 1e-4
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(12), atol=1e-4)


def test_a_wide_gap_is_no_trouble_in_single_precision():
    """The guard vectors must not drown in the rounding errors of the amplified ones."""
    rng = np.random.default_rng(0)
    blocks = [rng.random((25, 25)) for _ in range(30)]
    weak = rng.random((750, 750)) < 0.005
    dense = block_diag([block + block.T for block in blocks]).toarray() + weak + weak.T
    graph = normalize_graph(csr_array(dense))[0]
    found = top_eigenpairs(graph, 30, tol=1e-4, random_state=0)
    assert found.vectors.dtype == np.float32
    np.testing.assert_allclose(
        found.values, np.linalg.eigvalsh(graph.toarray())[::-1][:30], atol=1e-5
    )


@pytest.mark.parametrize(("tol", "precision"), [(1e-6, np.float64), (1e-4, np.float32)])
def test_accurate_vectors_are_left_alone(crowded, tol, precision, monkeypatch):
    """A few leading eigenvalues stand apart and converge long before the k-th in the crowd."""
    widths, ritz = [], eigen_module._rayleigh_ritz

    def watch(operator, block, k):
        if block.shape[1] > 4:  # Four probes look for missed vectors afterwards.
            widths.append(block.shape[1])
        return ritz(operator, block, k)

    monkeypatch.setattr(eigen_module, "_rayleigh_ritz", watch)
    graph, values = crowded
    found = top_eigenpairs(graph, 100, tol=tol, random_state=0)
    assert found.vectors.dtype == precision
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 2
    residuals = np.linalg.norm(graph @ found.vectors - found.vectors * found.values, axis=0)
    assert residuals.max() < 1.05 * tol
    np.testing.assert_allclose(found.values, values[:100], atol=tol)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(100), atol=10 * tol)


def test_progress_rises_within_rounds_to_the_end():
    told = []

    class Space:
        """Subspace of which every round halves the residual."""

        kind, lowest, degrees, width = np.float64, -1.0, (3, 20), 6
        residual = 0.8

        def advance(self, first, degree, low, high, k, report):
            self.residual /= 8
            for done in (0.25, 0.75):
                report(done)
            return np.linspace(1, 0.5, self.width - first), np.full(k, self.residual)

        def sort(self, order): ...

        def draw_probes(self): ...

        def advance_probes(self, degree, low, high):
            return 0.0

    iteration.iterate_subspace(Space(), 3, 1e-3, progress=lambda *report: told.append(report))
    assert {report[0::2] for report in told} == {("finding eigenvectors", 100)}
    shares = [report[1] for report in told]
    assert shares[0] == 0
    assert shares[-1] == 100
    assert len(set(shares)) > 8
    assert max(np.diff(shares)) < 35
