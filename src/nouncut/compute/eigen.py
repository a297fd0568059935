"""Leading eigenvectors of a normalised graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from nouncut.compute.dense import inner_products, tall_product
from nouncut.compute.products import apply_series, sparse_product
from nouncut.compute.progress import Progress
from nouncut.compute.threads import blas_threads

# Up to here a dense solve is the quickest, and it cannot miss a vector.
DENSE_SIZE = 400
_DENSE_OPERATOR = 1500
# A filter must not amplify the first vector so much that the last ones drown in its rounding.
_AMPLIFICATION: dict[Any, float] = {np.float64: 1e9, np.float32: 1e4}
# Where a random block's eigenvalues may end; the first round tells.
_FIRST_GUESS = 0.3
_MAX_ROUNDS = 60
# Filters need an interval to damp.
_NARROWEST = 1e-5
# Vectors so much better than asked for hardly disturb those that are kept orthogonal to them.
_MARGIN = 4
# Larger blocks are held in single precision, and so are all that need no smaller residual than it
# can reach.
_DOUBLE_ENTRIES = 2_000_000
_SINGLE_TOLERANCE = 1e-4
_ROWS_AT_ONCE = 4096
# Random vectors that look for eigenvectors outside a block, how often they are filtered, and how
# often they are sent out.
_SCOUTS, _SCOUTING_ROUNDS, _SEARCHES = 4, 3, 4
# Residuals of an operator's vectors, relative to the distance of the eigenvalues around the k-th.
_OF_THE_CROWD, _COARSEST = 0.02, 1e-3
_FINEST: dict[Any, float] = {np.float64: 1e-7, np.float32: 3e-6}


class Eigenpairs(NamedTuple):
    """Leading eigenvalues and eigenvectors."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]


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
    """Return the k algebraically largest eigenvalues of a symmetric matrix with their vectors.

    Small matrices are solved densely. Larger ones by subspace iteration with a Chebyshev filter:
    a block of vectors finds repeated and crowded eigenvalues together, which single-vector
    Lanczos methods (ARPACK) skip while their residuals look fine.
    """
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
    values, vectors = _leading_eigenpairs(
        operator, block, k, tol, highest, rng, n_threads, progress
    )
    return Eigenpairs(values[:wanted], vectors[:, :wanted])


def operator_eigenpairs(
    operator: Operator,
    start: NDArray[Any],
    k: int,
    *,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
) -> Eigenpairs:
    """Return the k algebraically largest eigenpairs of a matrix that is known by its products.

    The eigenvalues of a diffused affinity that lie around the k-th may be a thousand times closer
    to each other than to the first one, so the residual that is small enough follows from how far
    apart they are. Afterwards random vectors look for eigenvectors that the block has missed.
    """
    n, dtype = len(start), start.dtype
    if n <= max(_DENSE_OPERATOR, 3 * start.shape[1]):
        matrix = operator.product(np.eye(n, dtype=dtype)).astype(np.float64)
        return _dense_eigenpairs((matrix + matrix.T) / 2, k)
    rng = check_random_state(random_state)
    block = np.hstack([start, rng.normal(size=(n, _SCOUTS)).astype(dtype)])
    values, _ = _rayleigh_ritz(operator, block, k, n_threads)
    last = float(values[-_SCOUTS - 1])
    tol = float(np.clip(_OF_THE_CROWD * (values[k - 1] - last), _FINEST[dtype.type], _COARSEST))
    return _leading_eigenpairs(operator, block, k, tol, last, rng, n_threads, None)


def _leading_eigenpairs(
    operator: Operator,
    block: NDArray[Any],
    k: int,
    tol: float,
    highest: float | None,
    rng: np.random.RandomState,
    n_threads: int,
    progress: Progress | None,
) -> Eigenpairs:
    """Turn a block into leading eigenvectors, and look for any that it has missed."""
    for _ in range(_SEARCHES):
        values = _filtered_iteration(operator, block, k, tol, highest, n_threads, progress)
        order = np.argsort(-values, kind="stable")
        values, block = values[order], np.take(block, order, axis=1)
        scouts = rng.normal(size=(len(block), _SCOUTS)).astype(block.dtype)
        outside = _largest_outside(operator, block, scouts, float(values[k - 1]), n_threads)
        if outside <= values[k - 1] + tol:
            break
        block[:, -_SCOUTS:], highest = scouts, float(values[-_SCOUTS - 1])
    else:
        warnings.warn(
            f"Some of the {k} leading eigenvectors may be missing: clusters may be less stable "
            "than they could be.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Eigenpairs(values, block)


def _largest_outside(
    operator: Operator, known: NDArray[Any], scouts: NDArray[Any], level: float, n_threads: int
) -> float:
    """Turn random vectors into the leading ones outside a block's span; return the top value."""
    low, high = operator.lowest, min(max(level, operator.lowest + _NARROWEST), 1 - 1e-3)
    most = np.log(_AMPLIFICATION[scouts.dtype.type]) / _growth(1.0, low, high)
    degree = int(np.clip(most, *operator.degrees))
    for _ in range(_SCOUTING_ROUNDS):
        _remove(known, scouts, n_threads)
        operator.chebyshev(scouts, degree, low, high)
        # Twice: filters amplify what rounding has left of the block.
        _remove(known, scouts, n_threads)
        _remove(known, scouts, n_threads)
        values, _ = _rayleigh_ritz(operator, scouts, 1, n_threads)
    return float(values[0])


def _dense_eigenpairs(matrix: NDArray[Any], k: int) -> Eigenpairs:
    n = len(matrix)
    try:
        values, vectors = eigh(matrix, subset_by_index=[n - k, n - 1])
    except LinAlgError:
        # LAPACK's solver for some eigenvalues may fail where many are equal.
        values, vectors = (part[..., n - k :] for part in eigh(matrix, driver="evd"))
    return Eigenpairs(values[::-1].copy(), np.ascontiguousarray(vectors[:, ::-1]))


def guard_vectors(k: int) -> int:
    """Return how many further vectors carry the eigenvalues that crowd below the k-th."""
    return max(16, k // 10)


def _fill_with_noise(block: NDArray[Any], rng: np.random.RandomState) -> None:
    """Draw numbers a few rows at a time, to hold few of them in double precision."""
    for rows in range(0, len(block), _ROWS_AT_ONCE):
        part = block[rows : rows + _ROWS_AT_ONCE]
        part[:] = rng.normal(size=part.shape)


class Operator(NamedTuple):
    """A symmetric matrix that is known by its products."""

    product: Callable[[NDArray[Any]], NDArray[Any]]
    chebyshev: Callable[[NDArray[Any], int, float, float], None]
    lowest: float
    degrees: tuple[int, int]


def sparse_operator(S: csr_array, n_threads: int = 1) -> Operator:
    """Return the operator of a sparse matrix with eigenvalues between -1 and 1."""

    def chebyshev(block: NDArray[Any], degree: int, low: float, high: float) -> None:
        series = np.zeros((1, degree + 1))
        series[0, -1] = 1
        apply_series(S, block, series, (low, high), n_threads, out=[block])

    product = partial(sparse_product, S, n_threads=n_threads)
    return Operator(product, chebyshev, spectrum_floor(S), (3, 20))


def implicit_operator(product: Callable[[NDArray[Any]], NDArray[Any]], lowest: float) -> Operator:
    """Return the operator of a matrix whose products are costly: its filters have few degrees."""

    def chebyshev(block: NDArray[Any], degree: int, low: float, high: float) -> None:
        kind, centre, radius = block.dtype.type, (low + high) / 2, (high - low) / 2
        before, now = block.copy(), (product(block) - kind(centre) * block) / kind(radius)
        for _ in range(1, degree):
            step = (product(now) - kind(centre) * now) * kind(2 / radius)
            before, now = now, step - before
        block[:] = now

    return Operator(product, chebyshev, lowest, (1, 8))


def _filtered_iteration(
    operator: Operator,
    block: NDArray[Any],
    k: int,
    tol: float,
    highest: float | None,
    n_threads: int,
    progress: Progress | None,
) -> NDArray[np.float64]:
    """Turn a block into leading eigenvectors, in place, and return their eigenvalues.

    Alternates between damping what lies below `highest`, the least of the block's eigenvalues
    (None where the block is random), and Rayleigh-Ritz. Leading vectors that are accurate are left
    alone; only the others, kept orthogonal to them, go on.
    """
    residual = np.inf
    values, n_done = np.ones(block.shape[1]), 0
    for _ in range(_MAX_ROUNDS):
        if progress:
            # Residuals shrink by about the same factor in every round.
            share = np.log(min(residual, 1.0)) / np.log(tol)
            progress("finding eigenvectors", int(100 * min(share, 1.0)), 100)
        if residual <= tol:
            break
        done, rest = block[:, :n_done], block[:, n_done:]
        damped = _FIRST_GUESS if highest is None else highest
        _chebyshev_filter(operator, rest, damped, values[n_done])
        if n_done:
            _remove(done, rest, n_threads)
        values[n_done:], residuals = _rayleigh_ritz(operator, rest, k - n_done, n_threads)
        # A random block's eigenvalues lie far below those that they will become.
        highest = values[len(values) // 2 if highest is None else -1]
        residual = float(residuals.max())
        n_done += int(np.argmax(np.append(residuals > tol / _MARGIN, True)))
    else:
        warnings.warn(
            f"The {k} leading eigenvectors have residuals up to {residual:.1e}, more than "
            f"{tol:.1e}: clusters may be less stable than they could be.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return values


def spectrum_floor(S: csr_array) -> float:
    """Return a value that no eigenvalue of a normalised graph is below."""
    if S.shape[0] <= DENSE_SIZE:
        lowest = eigh(S.toarray(), subset_by_index=[0, 0], eigvals_only=True)[0]
    else:
        start = np.cos(np.arange(S.shape[0]))
        lowest = eigsh(S, 1, which="SA", tol=1e-2, v0=start, return_eigenvectors=False)[0]
    return max(-1.0, float(lowest) - 0.05)


def _remove(done: NDArray[Any], rest: NDArray[Any], n_threads: int) -> None:
    """Make a block orthogonal to other vectors, in place."""
    rest /= np.sqrt(np.einsum("ij,ij->j", rest, rest))
    shares = inner_products(done, rest, n_threads, multiply_in=rest.dtype.type)
    rest -= tall_product(done, shares, n_threads)


def _rayleigh_ritz(
    operator: Operator, block: NDArray[Any], k: int, n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Replace a block by its Ritz vectors, largest value first.

    Returns the values and the residuals of the first k.
    """
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
    inner: NDArray[Any], overlap: NDArray[Any], rounding: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve ``inner x = value overlap x`` for symmetric matrices, the second one positive."""
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


def _chebyshev_filter(operator: Operator, block: NDArray[Any], high: float, top: float) -> None:
    """Amplify the eigenvectors above `high` and damp those below, in place.

    The block's own eigenvalues reach up to `top`; those of vectors that have been removed from it,
    and will be again, up to 1.
    """
    low = operator.lowest
    high = min(max(high, low + _NARROWEST), 1 - 1e-3)
    log_most = np.log(2 * _AMPLIFICATION[block.dtype.type])
    most = min(log_most / _growth(top, low, high), 2 * log_most / _growth(1.0, low, high))
    operator.chebyshev(block, int(np.clip(most, *operator.degrees)), low, high)


def _growth(x: float, low: float, high: float) -> float:
    """Return g where Chebyshev's polynomial of degree m on an interval is cosh(m g) at x."""
    beyond = max(x, high + _NARROWEST)
    return float(np.arccosh((2 * beyond - high - low) / (high - low)))
