"""Leading eigenvectors of a normalised graph, by subspace iteration with Chebyshev filters.

A block of vectors finds repeated and crowded eigenvalues together. SciPy's single-vector ARPACK
skips some of them, and takes longer for many vectors (``benchmarks/eigen.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from nouncut.compute.checks import warn_user
from nouncut.compute.dense import inner_products, tall_product
from nouncut.compute.progress import Progress
from nouncut.compute.sparse import apply_series, sparse_product
from nouncut.compute.threads import blas_threads

# Up to this size a dense solve is fastest, and it cannot miss a vector.
DENSE_SIZE = 400
_DENSE_OPERATOR = 1500
# More amplification of the first vector would drown the last ones in its rounding errors.
_AMPLIFICATION: dict[Any, float] = {np.float64: 1e9, np.float32: 1e4}
# Upper end of the damped interval in the first round, when the block is random.
_FIRST_GUESS = 0.3
_MAX_ROUNDS = 60
# Narrowest interval that a filter can damp.
_NARROWEST = 1e-5
# Vectors are locked when their residual is this factor below the tolerance; larger errors would
# disturb the vectors that are kept orthogonal to them.
_MARGIN = 4
# Larger blocks, and all with a tolerance that it can reach, are held in single precision.
_DOUBLE_ENTRIES = 2_000_000
_SINGLE_TOLERANCE = 1e-4
_ROWS_AT_ONCE = 4096
# Random vectors that look for missed eigenvectors, their filter steps, and the most searches.
PROBES, _PROBE_STEPS, _SEARCHES = 4, 3, 4
# Shares of the progress: of the rounds, before probes look for missed vectors; of the first round,
# as a guess; of a round at least.
_OF_ROUNDS, _FIRST_STEP, _SMALLEST_STEP = 0.9, 0.2, 0.02
# Tolerance for an implicit operator, relative to the gap between the eigenvalues around the k-th.
_OF_THE_GAP, _COARSEST = 0.02, 1e-3
_FINEST: dict[Any, float] = {np.float64: 1e-7, np.float32: 3e-6}


# Called with the share of a round that is done.
Report = Callable[[float], None]


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


class Subspace(Protocol):
    """A block of vectors on the way to leading eigenvectors, wherever its rows are."""

    kind: type[np.floating[Any]]  # Its precision.
    lowest: float  # No eigenvalue is below it.
    degrees: tuple[int, int]  # The lowest and highest degree of a filter.

    @property
    def width(self) -> int:
        """The number of vectors."""

    def advance(
        self, first: int, degree: int, low: float, high: float, k: int, report: Report
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Filter the columns from `first` on, and replace them by Ritz vectors.

        They are made orthogonal to the columns before. Returns the Ritz values, and the residuals
        of the first k. A round that takes long may report which share of it is done.
        """

    def sort(self, order: NDArray[np.intp]) -> None:
        """Permute the columns."""

    def draw_probes(self) -> None:
        """Draw random vectors beside the block."""

    def advance_probes(self, degree: int, low: float, high: float) -> float:
        """Filter the probes outside of the block's span; return their largest Ritz value."""

    def adopt_probes(self) -> None:
        """Replace the last columns by the probes."""


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


def iterate_subspace(
    space: Subspace,
    k: int,
    tol: float,
    highest: float | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Iterate a block to leading eigenvectors; repeat if random vectors find a missed one.

    Returns the eigenvalues of all columns. `highest` is the eigenvalue of the last column; None for
    a random block.
    """
    for _ in range(_SEARCHES):
        values = _filtered_iteration(space, k, tol, highest, progress)
        order = np.argsort(-values, kind="stable")
        values = values[order]
        space.sort(order)
        if _largest_outside(space, float(values[k - 1]), progress) <= values[k - 1] + tol:
            break
        space.adopt_probes()
        highest = float(values[-PROBES - 1])
    else:
        warn_user(
            f"Some of the {k} leading eigenvectors may be missing: clusters may be less stable "
            "than they could be.",
            ConvergenceWarning,
        )
    _report(progress, 1)
    return values


def _filtered_iteration(
    space: Subspace, k: int, tol: float, highest: float | None, progress: Progress | None
) -> NDArray[np.float64]:
    """Turn a block into leading eigenvectors and return their eigenvalues.

    Every round damps the eigenvalues below `highest` (None for a random block) and takes
    Rayleigh-Ritz vectors. Accurate leading vectors are locked; the others stay orthogonal to them.
    """
    residual, share, step = np.inf, 0.0, _FIRST_STEP
    values, n_done = np.ones(space.width), 0
    for _ in range(_MAX_ROUNDS):
        if residual < 1:
            # Residuals shrink by about the same factor in every round.
            before, share = share, float(np.log(max(residual, tol)) / np.log(tol))
            step = max(share - before, _SMALLEST_STEP)
        report = partial(_report, progress, _OF_ROUNDS * share, _OF_ROUNDS * min(step, 1 - share))
        report(0)
        if residual <= tol:
            break
        high = _damped_end(space, _FIRST_GUESS if highest is None else highest)
        # Rounding brings locked vectors back until they are removed again. They have eigenvalues
        # up to 1, so what the block itself could bear would make them drown it.
        degree = _filter_degree(space, high, 2 * _AMPLIFICATION[space.kind])
        values[n_done:], residuals = space.advance(
            n_done, degree, space.lowest, high, k - n_done, report
        )
        # A random block's eigenvalues are far too low: those of its first half are nearer.
        highest = values[len(values) // 2 if highest is None else -1]
        residual = float(residuals.max())
        n_done += int(np.argmax(np.append(residuals > tol / _MARGIN, True)))
    else:
        warn_user(
            f"The {k} leading eigenvectors have residuals up to {residual:.1e}, more than "
            f"{tol:.1e}: clusters may be less stable than they could be.",
            ConvergenceWarning,
        )
    return values


def _report(progress: Progress | None, start: float, step: float = 0, done: float = 0) -> None:
    if progress:
        progress("finding eigenvectors", int(100 * (start + step * done)), 100)


def _largest_outside(space: Subspace, level: float, progress: Progress | None) -> float:
    """Turn random probes into leading vectors outside a block's span; return the top value."""
    space.draw_probes()
    high = _damped_end(space, level)
    degree = _filter_degree(space, high, _AMPLIFICATION[space.kind])
    for number in range(_PROBE_STEPS):
        _report(progress, _OF_ROUNDS + (1 - _OF_ROUNDS) * number / _PROBE_STEPS)
        found = space.advance_probes(degree, space.lowest, high)
    return found


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


def definite_eigh(
    inner: NDArray[Any], overlap: NDArray[Any], rounding: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve ``inner x = value overlap x`` for symmetric matrices, `overlap` positive definite."""
    with blas_threads(1):
        while True:
            try:
                lower = cholesky(overlap + rounding * np.eye(len(overlap)), lower=True)
                break
            except LinAlgError:
                rounding = max(10 * rounding, 1e-14 * len(overlap))
        half = solve_triangular(lower, inner, lower=True)
        values, vectors = eigh(solve_triangular(lower, half.T, lower=True), driver="evd")
        vectors = solve_triangular(lower, vectors, lower=True, trans="T")
    return values[::-1], vectors[:, ::-1]


def _damped_end(space: Subspace, level: float) -> float:
    """Return the upper end of the interval that a filter damps."""
    return min(max(level, space.lowest + _NARROWEST), 1 - 1e-3)


def _filter_degree(space: Subspace, high: float, amplification: float) -> int:
    most = np.log(amplification) / _growth(1.0, space.lowest, high)
    return int(np.clip(most, *space.degrees))


def _growth(x: float, low: float, high: float) -> float:
    """Return g such that the Chebyshev polynomial of degree m on [low, high] is cosh(m g) at x."""
    beyond = max(x, high + _NARROWEST)
    return float(np.arccosh((2 * beyond - high - low) / (high - low)))
