"""Leading eigenvectors of a normalised graph, by subspace iteration with Chebyshev filters.

A block of vectors finds repeated and crowded eigenvalues together. SciPy's single-vector ARPACK
skips some of them, and takes longer for many vectors (``benchmarks/eigen.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, eigh
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from sklearn.utils import check_random_state

from nouncut.compute.dense import inner_products, tall_product
from nouncut.compute.iteration import PROBES, Report, definite_eigh, iterate_subspace
from nouncut.compute.progress import Progress
from nouncut.compute.sparse import apply_series, sparse_product

# Up to this size a dense solve is fastest, and it cannot miss a vector.
DENSE_SIZE = 400
_DENSE_OPERATOR = 1500
# Larger blocks, and all with a tolerance that it can reach, are held in single precision.
_DOUBLE_ENTRIES = 2_000_000
_SINGLE_TOLERANCE = 1e-4
_ROWS_AT_ONCE = 4096
# Tolerance for an implicit operator, relative to the gap between the eigenvalues around the k-th.
_OF_THE_GAP, _COARSEST = 0.02, 1e-3
_FINEST: dict[Any, float] = {np.float64: 1e-7, np.float32: 3e-6}


class Eigenpairs(NamedTuple):
    """Leading eigenvalues (k,), in descending order, and eigenvectors (n, k)."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]


class Operator(NamedTuple):
    """A symmetric matrix that is known by its products with blocks of vectors."""

    product: Callable[[NDArray[Any]], NDArray[Any]]
    chebyshev: Callable[[NDArray[Any], int, float, float], None]  # Filters a block in place.
    lowest: float  # No eigenvalue is below it.
    degrees: tuple[int, int]  # The lowest and highest degree of a filter.
    n_threads: int


def sparse_operator(S: csr_array, n_threads: int = 1) -> Operator:
    """Return the operator of a sparse matrix with eigenvalues between -1 and 1."""

    def chebyshev(block: NDArray[Any], degree: int, low: float, high: float) -> None:
        series = np.zeros((1, degree + 1))
        series[0, -1] = 1
        apply_series(S, block, series, (low, high), n_threads, out=[block])

    product = partial(sparse_product, S, n_threads=n_threads)
    return Operator(product, chebyshev, spectrum_floor(S), (3, 20), n_threads)


def implicit_operator(
    product: Callable[[NDArray[Any]], NDArray[Any]], lowest: float, n_threads: int = 1
) -> Operator:
    """Return the operator of a matrix with costly products; its filters have low degrees."""

    def chebyshev(block: NDArray[Any], degree: int, low: float, high: float) -> None:
        kind, centre, radius = block.dtype.type, (low + high) / 2, (high - low) / 2
        before, now = block.copy(), (product(block) - kind(centre) * block) / kind(radius)
        for _ in range(1, degree):
            step = (product(now) - kind(centre) * now) * kind(2 / radius)
            before, now = now, step - before
        block[:] = now

    return Operator(product, chebyshev, lowest, (1, 8), n_threads)


def top_eigenpairs(
    S: csr_array | NDArray[Any],
    k: int,
    *,
    n_spare: int = 0,
    tol: float = 1e-6,
    start: Eigenpairs | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Eigenpairs:
    """Return the k algebraically largest eigenpairs of S, and `n_spare` less accurate ones."""
    n = S.shape[0]
    wanted = min(n, k + n_spare)
    size = max(wanted, k + guard_vectors(k))
    if isinstance(S, np.ndarray) or n <= max(DENSE_SIZE, 3 * size):
        dense = S if isinstance(S, np.ndarray) else S.toarray()
        return _dense_eigenpairs(dense, wanted)
    is_small = n * size <= _DOUBLE_ENTRIES
    dtype = np.float64 if is_small and tol < _SINGLE_TOLERANCE else np.float32
    block = np.empty((n, size), dtype=dtype)
    n_known, highest = 0, None
    if start is not None:
        n_known = min(size, len(start.values))
        block[:, :n_known] = start.vectors[:, :n_known]
        highest = float(start.values[n_known - 1])
    rng = check_random_state(random_state)
    _fill_with_noise(block[:, n_known:], rng)
    tol = tol if dtype == np.float64 else max(tol, _SINGLE_TOLERANCE)
    operator = sparse_operator(S.astype(dtype), n_threads)
    values, vectors = _leading_eigenpairs(operator, block, k, tol, highest, rng, progress)
    return Eigenpairs(values[:wanted], vectors[:, :wanted])


def operator_eigenpairs(
    operator: Operator,
    start: NDArray[Any],
    k: int,
    random_state: int | np.random.RandomState | None = None,
) -> Eigenpairs:
    """Return the k algebraically largest eigenpairs of an operator, and further ones."""
    n, dtype = len(start), start.dtype
    if n <= max(_DENSE_OPERATOR, 3 * start.shape[1]):
        matrix = operator.product(np.eye(n, dtype=dtype)).astype(np.float64)
        return _dense_eigenpairs((matrix + matrix.T) / 2, k)
    rng = check_random_state(random_state)
    block = np.hstack([start, rng.normal(size=(n, PROBES)).astype(dtype)])
    values, _ = _rayleigh_ritz(operator, block, k)
    last = float(values[-PROBES - 1])
    # The eigenvalues of a diffused affinity around the k-th may be a thousand times closer to each
    # other than to the first one.
    tol = float(np.clip(_OF_THE_GAP * (values[k - 1] - last), _FINEST[dtype.type], _COARSEST))
    return _leading_eigenpairs(operator, block, k, tol, last, rng, None)


def guard_vectors(k: int) -> int:
    """Return how many further vectors to iterate for the eigenvalues just below the k-th."""
    return max(16, k // 10)


def spectrum_floor(S: csr_array) -> float:
    """Return a lower bound of the eigenvalues of a normalised graph."""
    if S.shape[0] <= DENSE_SIZE:
        lowest = eigh(S.toarray(), subset_by_index=[0, 0], eigvals_only=True)[0]
    else:
        start = np.cos(np.arange(S.shape[0]))
        lowest = eigsh(S, 1, which="SA", tol=1e-2, v0=start, return_eigenvectors=False)[0]
    return max(-1.0, float(lowest) - 0.05)


def _dense_eigenpairs(matrix: NDArray[Any], k: int) -> Eigenpairs:
    n = len(matrix)
    try:
        values, vectors = eigh(matrix, subset_by_index=[n - k, n - 1])
    except LinAlgError:
        # LAPACK's solver for some eigenvalues may fail where many are equal.
        values, vectors = (part[..., n - k :] for part in eigh(matrix, driver="evd"))
    return Eigenpairs(values[::-1].copy(), np.ascontiguousarray(vectors[:, ::-1]))


def _fill_with_noise(block: NDArray[Any], rng: np.random.RandomState) -> None:
    """Draw a few rows at a time: the draws are in double precision."""
    for rows in range(0, len(block), _ROWS_AT_ONCE):
        part = block[rows : rows + _ROWS_AT_ONCE]
        part[:] = rng.normal(size=part.shape)


def _leading_eigenpairs(
    operator: Operator,
    block: NDArray[Any],
    k: int,
    tol: float,
    highest: float | None,
    rng: np.random.RandomState,
    progress: Progress | None,
) -> Eigenpairs:
    """Iterate a block to leading eigenvectors."""
    space = _ArraySubspace(operator, block, rng)
    values = iterate_subspace(space, k, tol, highest, progress)
    return Eigenpairs(values, space.block)


class _ArraySubspace:
    """The vectors of an operator in memory; see `Subspace`."""

    def __init__(self, operator: Operator, block: NDArray[Any], rng: np.random.RandomState) -> None:
        self.block, self._operator, self._rng = block, operator, rng
        self._probes = block[:, :0]
        self.lowest, self.degrees = operator.lowest, operator.degrees
        self.kind = block.dtype.type

    @property
    def width(self) -> int:
        return int(self.block.shape[1])

    def advance(
        self, first: int, degree: int, low: float, high: float, k: int, report: Report
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rest = self.block[:, first:]
        self._operator.chebyshev(rest, degree, low, high)
        if first:
            _remove(self.block[:, :first], rest, self._operator.n_threads)
        return _rayleigh_ritz(self._operator, rest, k)

    def sort(self, order: NDArray[np.intp]) -> None:
        self.block = np.take(self.block, order, axis=1)

    def draw_probes(self) -> None:
        drawn = self._rng.normal(size=(len(self.block), PROBES))
        self._probes = drawn.astype(self.block.dtype)

    def advance_probes(self, degree: int, low: float, high: float) -> float:
        _remove(self.block, self._probes, self._operator.n_threads)
        self._operator.chebyshev(self._probes, degree, low, high)
        # Twice, because filters amplify the block's remainder that rounding leaves.
        _remove(self.block, self._probes, self._operator.n_threads)
        _remove(self.block, self._probes, self._operator.n_threads)
        return float(_rayleigh_ritz(self._operator, self._probes, 1)[0][0])

    def adopt_probes(self) -> None:
        self.block[:, -PROBES:] = self._probes


def _remove(done: NDArray[Any], rest: NDArray[Any], n_threads: int) -> None:
    """Scale columns to unit length and make them orthogonal to `done`, in place."""
    rest /= np.sqrt(np.einsum("ij,ij->j", rest, rest))
    shares = inner_products(done, rest, n_threads, multiply_in=rest.dtype.type)
    rest -= tall_product(done, shares, n_threads)


def _rayleigh_ritz(
    operator: Operator, block: NDArray[Any], k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Replace a block by its Ritz vectors; return their values and the first k residuals."""
    n_threads = operator.n_threads
    block /= np.sqrt(np.einsum("ij,ij->j", block, block))
    image = operator.product(block)
    overlap = inner_products(block, n_threads=n_threads)
    inner = inner_products(block, image, n_threads, multiply_in=block.dtype.type)
    rounding = np.finfo(block.dtype).eps / 10
    values, rotation = definite_eigh((inner + inner.T) / 2, overlap, rounding)
    tall_product(block, rotation, n_threads, out=block)
    tall_product(image, rotation, n_threads, out=image)
    image[:, :k] -= block[:, :k] * values[:k].astype(block.dtype)
    return values, np.sqrt(np.einsum("ij,ij->j", image[:, :k], image[:, :k]))
