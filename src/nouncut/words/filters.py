"""Positive nouns: the few nouns, out of tens of thousands, that tell these images apart.

Images are grouped into many small clusters, every noun goes to the centre it points at most, and
each centre keeps its best nouns. A filter is a temperature and a score; to add one, add it to
`_FILTERS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from nouncut.compute.checks import check_choice, check_positive
from nouncut.compute.rows import unit_rows

NounFilter = Literal["tac", "gradnorm", "none"]

N_PER_CENTER = 5
# TAC: a centre for every 300 images, or three per cluster where clusters are smaller than that.
_IMAGES_PER_CENTER = 300
_CENTERS_PER_CLUSTER = 3
# There are many more centres than clusters, so a poor start costs little.
_N_INIT = 1
_FLOATS = (np.float64, np.float32)
_ROWS_AT_ONCE = 4096
# Noun-centre cosines held at any one time: 16 MB.
_COSINES_AT_ONCE = 2**22


def positive_nouns(
    image_features: ArrayLike,
    noun_features: ArrayLike | Sequence[ArrayLike],
    n_clusters: int,
    *,
    method: NounFilter = "tac",
    n_per_center: int = N_PER_CENTER,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """Choose the nouns that tell the images apart.

    Parameters
    ----------
    image_features : array-like of shape (n_images, d)
        Image features in the space of the nouns; rows of zeros are passed over.
    noun_features : array-like of shape (n_nouns, d) or sequence of such
        Noun features, one array or one per prompt; averaged by `mean_prompt_features`.
    n_clusters : int
        The number of clusters wanted.
    method : {"tac", "gradnorm", "none"}, default="tac"
        The filter: see `select_nouns`; "none" keeps every noun.
    n_per_center : int, default=5
        Nouns to keep per centre of the images.
    random_state : int or RandomState, optional
        Seed of the k-means that finds the centres.

    Returns
    -------
    ndarray of shape (n_positive,)
        Indices of the chosen nouns, ascending.

    References
    ----------
    Li et al., "Image Clustering with External Guidance", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.words.filters import positive_nouns
    >>> images = np.repeat(np.eye(3), 10, axis=0)
    >>> nouns = np.array([[9.0, 1, 0], [1, 1, 1], [0, 8, 1], [2, 1, 0], [0, 0, 3]])
    >>> positive_nouns(images, nouns, n_clusters=1, n_per_center=1, random_state=0)
    array([0, 2, 4])
    """
    check_choice("method", method, get_args(NounFilter))
    check_positive({"n_clusters": n_clusters, "n_per_center": n_per_center}, Integral)
    nouns = mean_prompt_features(noun_features)
    checked = check_array(image_features, dtype=_FLOATS, input_name="image_features")
    if checked.shape[1] != nouns.shape[1]:
        raise ValueError(
            f"noun_features has {nouns.shape[1]} columns, but image_features {checked.shape[1]}: "
            "encode nouns and images with the same model."
        )
    if method == "none":
        return np.arange(len(nouns))
    images = unit_rows(checked).astype(np.float32, copy=False)
    images = images[images.any(axis=1)]
    if not len(images):
        raise ValueError("image_features has rows of zeros only. Encode the images again.")
    centers = image_centers(
        images, count_centers(len(images), n_clusters), random_state=random_state
    )
    return select_nouns(centers, nouns, method=method, n_per_center=n_per_center)


def mean_prompt_features(noun_features: ArrayLike | Sequence[ArrayLike]) -> NDArray[np.float32]:
    """Average the features of every noun over prompts, each prompt's at length one."""
    prompts = _split_prompts(noun_features)
    shapes = [np.shape(prompt) for prompt in prompts]
    if len(set(shapes)) > 1:
        raise ValueError(
            f"noun_features has arrays of different shapes: {shapes}. Encode the same nouns with "
            "every prompt."
        )
    if len(shapes[0]) != 2 or 0 in shapes[0]:
        raise ValueError(
            f"noun_features must be of shape (n_nouns, d), or one such array per prompt, with at "
            f"least one noun; got {shapes[0]}."
        )
    mean = np.empty(shapes[0], np.float32)
    # In blocks, so that nothing as large as another copy of all prompts exists.
    for first in range(0, len(mean), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        total = sum(_unit_block(prompt[rows]) for prompt in prompts)
        mean[rows] = unit_rows(np.asarray(total))
    return mean


def count_centers(n_images: int, n_clusters: int) -> int:
    """Return how many centres the images of a filter have."""
    if n_images >= _IMAGES_PER_CENTER * n_clusters:
        return round(n_images / _IMAGES_PER_CENTER)
    return min(_CENTERS_PER_CLUSTER * n_clusters, n_images)


def image_centers(
    image_features: NDArray[Any],
    n_centers: int,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.float32]:
    """Return the centres that k-means finds among images.

    One run of scikit-learn's `KMeans` from a k-means++ start.
    """
    features = np.ascontiguousarray(image_features, dtype=np.float32)
    kmeans = KMeans(n_centers, n_init=_N_INIT, random_state=random_state)
    with warnings.catch_warnings():
        # Copies of an image leave centres without members, and those are dropped below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = kmeans.fit(features).labels_
    found, members = np.unique(labels, return_inverse=True)
    n_images = len(features)
    belongs = csr_array(
        (np.ones(n_images, np.float32), (members, np.arange(n_images))),
        shape=(len(found), n_images),
    )
    return unit_rows(np.asarray(belongs @ features))


def select_nouns(
    centers: NDArray[Any],
    nouns: NDArray[Any],
    *,
    method: Literal["tac", "gradnorm"] = "tac",
    n_per_center: int = N_PER_CENTER,
) -> NDArray[np.intp]:
    """Give every noun to its best centre, and keep the best nouns of every centre.

    A noun n has the probabilities s, the softmax *over centres* of centre . n / tau, and goes to
    the centre of the largest one. "tac" (tau = 1) keeps the nouns with the largest such
    probability. "gradnorm" (tau = 0.04) keeps those with the smallest gradient
    ``[sum_l s_l^2 + (1 - s_max)^2 - s_max^2]^(1/2)``. Of equal nouns the first is kept.
    """
    check_choice("method", method, tuple(_FILTERS))
    best, scores = _score_nouns(
        np.asarray(centers, dtype=np.float32), np.asarray(nouns, dtype=np.float32), _FILTERS[method]
    )
    # By centre, then by score, then by index.
    order = np.lexsort((-scores, best))
    grouped = best[order]
    rank = np.arange(len(order)) - np.searchsorted(grouped, grouped)
    return np.sort(order[rank < n_per_center])


class _Filter(NamedTuple):
    """How a filter ranks the nouns of a centre.

    The score sees the weights ``exp((c_l . n - c_best . n) / tau)`` of all other centres, with
    the best one's, which is 1, set to 0: sums of these keep digits that ``1 - s_max`` would lose
    in float32. Larger is better.
    """

    tau: float
    score: Callable[[NDArray[np.float32]], NDArray[np.float32]]


def _largest_probability(others: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(1 / (1 + others.sum(axis=1)))


def _negative_gradient(others: NDArray[np.float32]) -> NDArray[np.float32]:
    # The published formula is || s - e_max || ||n||, and nouns have length one.
    rest = others.sum(axis=1)
    squares = np.einsum("ij,ij->i", others, others)
    return np.asarray(-np.sqrt(squares + rest**2) / (1 + rest))


_FILTERS = {
    "tac": _Filter(1.0, _largest_probability),
    "gradnorm": _Filter(0.04, _negative_gradient),
}


def _score_nouns(
    centers: NDArray[np.float32], nouns: NDArray[np.float32], rule: _Filter
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the best centre of every noun and its score there."""
    best = np.empty(len(nouns), np.intp)
    scores = np.empty(len(nouns), np.float32)
    step = max(1, _COSINES_AT_ONCE // len(centers))
    for first in range(0, len(nouns), step):
        rows = slice(first, first + step)
        weights = nouns[rows] @ centers.T
        best[rows] = weights.argmax(axis=1)
        weights -= weights.max(axis=1, keepdims=True)
        weights /= np.float32(rule.tau)
        np.exp(weights, out=weights)
        np.put_along_axis(weights, best[rows][:, None], 0, axis=1)
        scores[rows] = rule.score(weights)
    return best, scores


def _split_prompts(noun_features: Any) -> list[NDArray[Any]]:
    if isinstance(noun_features, list | tuple):
        if len(noun_features) == 0:
            raise ValueError("noun_features is empty. Pass the features of at least one noun.")
        if np.ndim(noun_features[0]) == 2:
            return [np.asarray(prompt) for prompt in noun_features]
    features = np.asarray(noun_features)
    return list(features) if features.ndim == 3 and len(features) else [features]


def _unit_block(features: NDArray[Any]) -> NDArray[np.float32]:
    checked = check_array(features, dtype=_FLOATS, input_name="noun_features")
    return unit_rows(checked).astype(np.float32, copy=False)
