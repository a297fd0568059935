"""The neural tangent kernel: visual proximity times semantic overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.softmax import softmax_rows
from nouncut.compute.threads import blas_threads, run_tasks

_ROWS_AT_ONCE = 128
# A little more than 1: opposite images are far apart, but not infinitely.
_SHIFT = 1.1


def looks_only(features: NDArray[Any]) -> NDArray[Any]:
    """Return features whose inner products grow with the cosine and are never negative.

    They compare images that the kernel finds nothing in common between: centred features of few
    images mostly have negative cosines, and nouns need not overlap.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Unit rows.

    Returns
    -------
    ndarray of shape (n, d + 1)
        Unit rows with the inner products ``(1.1 + cosine) / 2.1``.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.kernel import looks_only
    >>> rows = looks_only(np.array([[1.0], [-1.0]]))
    >>> (rows @ rows.T).round(3)
    array([[1.   , 0.048],
           [0.048, 1.   ]])
    """
    shift = np.full((len(features), 1), np.sqrt(_SHIFT), features.dtype)
    return np.asarray(np.hstack([features, shift]) / np.sqrt(1 + _SHIFT), features.dtype)


def noun_probabilities(
    features: NDArray[Any],
    noun_features: Sequence[NDArray[Any]],
    tau: float,
    n_threads: int = 1,
) -> list[NDArray[Any]]:
    """Return how strongly every image points at every noun, for every prompt.

    Parameters
    ----------
    features : ndarray of shape (n_images, d)
        Unit image features in the space of the nouns.
    noun_features : sequence of ndarray of shape (n_nouns, d)
        Noun features W_b, one array per prompt.
    tau : float
        Temperature.
    n_threads : int, default=1
        Threads to share the images.

    Returns
    -------
    list of ndarray of shape (n_images, n_nouns)
        ``softmax(W_b z_i / tau)``; every row sums to one.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.kernel import noun_probabilities
    >>> noun_probabilities(np.array([[1.0, 0.0]]), [np.eye(2)], tau=0.5)[0].round(3)
    array([[0.881, 0.119]])
    """
    results = []
    for nouns in noun_features:
        result = np.empty((len(features), len(nouns)), np.result_type(features, nouns))

        def keep(rows: slice, block: NDArray[Any], result: NDArray[Any] = result) -> None:
            result[rows] = block

        softmax_blocks(features, nouns, tau, keep, n_threads)
        results.append(result)
    return results


def softmax_blocks(
    features: NDArray[Any],
    nouns: NDArray[Any],
    tau: float,
    use: Callable[[slice, NDArray[Any]], None],
    n_threads: int = 1,
) -> None:
    """Make noun probabilities a few images at a time, for as many nouns as there may be.

    Parameters
    ----------
    features : ndarray of shape (n_images, d)
        Unit image features in the space of the nouns.
    nouns : ndarray of shape (n_nouns, d)
        Noun features of one prompt.
    tau : float
        Temperature.
    use : callable
        Called with the rows and their probabilities, in any order and from several threads; what
        it does not copy is gone afterwards.
    n_threads : int, default=1
        Threads to share the images.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.kernel import softmax_blocks
    >>> softmax_blocks(np.eye(2), np.eye(2), 0.5, lambda rows, block: print(rows, block.round(3)))
    slice(0, 128, None) [[0.881 0.119]
     [0.119 0.881]]
    """
    columns = np.ascontiguousarray(nouns.T)

    def softmax(first: int) -> None:
        rows = slice(first, first + _ROWS_AT_ONCE)
        logits = features[rows] @ columns
        softmax_rows(logits, tau)
        use(rows, logits)

    with blas_threads(1):
        run_tasks(softmax, range(0, len(features), _ROWS_AT_ONCE), n_threads)


def ntk_kernel(
    features: NDArray[Any],
    probabilities: NDArray[Any],
    other_features: NDArray[Any] | None = None,
    other_probabilities: NDArray[Any] | None = None,
    *,
    tau: float,
) -> NDArray[Any]:
    """Return the dense kernel between two (small) sets of images.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Unit image features.
    probabilities : ndarray of shape (n, n_nouns)
        Their noun probabilities.
    other_features, other_probabilities : ndarray, optional
        The other set; the same images where not given.
    tau : float
        Temperature of the probabilities.

    Returns
    -------
    ndarray of shape (n, m)
        ``(z_i . z_j) (s_i . s_j) / tau^2``: the inner product of the gradients of
        ``log sum_k exp(w_k . z / tau)`` with respect to the nouns' features w.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.kernel import noun_probabilities, ntk_kernel
    >>> z = np.eye(2)
    >>> ntk_kernel(z, noun_probabilities(z, [np.eye(2)], tau=1.0)[0], tau=1.0).round(3)
    array([[0.607, 0.   ],
           [0.   , 0.607]])
    """
    if other_features is None or other_probabilities is None:
        other_features, other_probabilities = features, probabilities
    visual = features @ other_features.T
    semantic = probabilities @ other_probabilities.T
    return np.asarray(visual * semantic / tau**2)
