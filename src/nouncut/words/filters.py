"""Positive nouns: the few nouns of a large vocabulary that distinguish these images.

K-means finds many small clusters of images, each noun goes to the centre it is closest to, and
each centre keeps its best nouns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from nouncut.compute.checks import check_choice, check_positive
from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.errors import ParameterError
from nouncut.words.nouns import NounFilter

N_PER_CENTER = 5
# TAC: one centre per 300 images, or three per cluster if clusters are smaller than that.
_IMAGES_PER_CENTER = 300
_CENTERS_PER_CLUSTER = 3
# A poor start of k-means costs little: there are many more centres than clusters.
_N_INIT = 1
_FLOATS = (np.float64, np.float32)
_ROWS_AT_ONCE = 4096
# Of the sum of a row's squares in float32.
_ROUNDING = 4e-6
# Cosines of nouns and centres in memory at any time: 16 MB.
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
    """Choose the nouns that distinguish the images.

    K-means finds centres of the images. The softmax over centres of (noun . centre / tau) gives
    each noun a probability per centre, and the noun goes to the centre with the largest one. Each
    centre keeps its best nouns: "tac" (tau = 1) those with the largest probability, "gradnorm"
    (tau = 0.04) those with the smallest gradient.

    Parameters
    ----------
    image_features : array-like of shape (n_images, d)
        Image features in the space of the nouns; all-zero rows are ignored.
    noun_features : array-like of shape (n_nouns, d) or sequence of such
        Features of the vocabulary, one array or one per prompt; prompts are averaged.
    n_clusters : int
        The number of clusters wanted.
    method : {"tac", "gradnorm", "none"}, default="tac"
        The filter; "none" keeps all nouns.
    n_per_center : int, default=5
        The number of nouns to keep per centre.
    random_state : int or RandomState, optional
        Seed of k-means.

    Returns
    -------
    ndarray of shape (n_positive,)
        Indices of the positive nouns, ascending.

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
    check_same_width(nouns.shape[1], checked.shape[1], "image_features")
    if method == "none":
        return np.arange(len(nouns))
    images = unit_rows(checked).astype(np.float32, copy=False)
    images = images[images.any(axis=1)]
    if not len(images):
        raise ParameterError("`image_features` has only zero rows. Encode the images again.")
    centers = image_centers(
        images, count_centers(len(images), n_clusters), random_state=random_state
    )
    return select_nouns(centers, nouns, method=method, n_per_center=n_per_center)


def check_same_width(n_noun_columns: int, n_columns: int, name: str) -> None:
    """Raise unless noun features have as many columns as the image features called `name`."""
    if n_noun_columns != n_columns:
        raise ParameterError(
            f"`noun_features` has {n_noun_columns} columns, but `{name}` has {n_columns}. Encode "
            "nouns and images with the same model."
        )


def mean_prompt_features(noun_features: ArrayLike | Sequence[ArrayLike]) -> NDArray[np.float32]:
    """Return unit rows (n_nouns, d): the mean over prompts of each noun's unit features."""
    prompts = _split_prompts(noun_features)
    shapes = [np.shape(prompt) for prompt in prompts]
    if len(set(shapes)) > 1:
        raise ParameterError(
            f"`noun_features` has arrays of different shapes: {shapes}. Encode the same nouns with "
            "each prompt."
        )
    if len(shapes[0]) != 2 or 0 in shapes[0]:
        raise ParameterError(
            "`noun_features` must have the shape (n_nouns, d), or be one such array per prompt, "
            f"with at least one noun; got {shapes[0]}."
        )
    if len(prompts) == 1 and _are_unit_rows(prompts[0]):
        return prompts[0]
    mean = np.empty(shapes[0], np.float32)
    # In blocks: the unit features of all prompts would take as much memory as the input.
    for first in range(0, len(mean), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        total = sum(_unit_block(prompt[rows]) for prompt in prompts)
        mean[rows] = unit_rows(np.asarray(total))
    return mean


def count_centers(n_images: int, n_clusters: int) -> int:
    """Return the number of centres for the k-means of a filter."""
    if n_images >= _IMAGES_PER_CENTER * n_clusters:
        return round(n_images / _IMAGES_PER_CENTER)
    return min(_CENTERS_PER_CLUSTER * n_clusters, n_images)


def image_centers(
    image_features: NDArray[Any],
    n_centers: int,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.float32]:
    """Return the unit means of the clusters that k-means finds, at most `n_centers` of them."""
    features = np.ascontiguousarray(image_features, dtype=np.float32)
    kmeans = KMeans(n_centers, n_init=_N_INIT, random_state=random_state)
    with warnings.catch_warnings():
        # Copies of an image leave centres without members, which are dropped below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = kmeans.fit(features).labels_
    members = np.unique(labels, return_inverse=True)[1]
    sums = label_matrix(members).astype(np.float32).T @ features
    return unit_rows(np.asarray(sums))


def select_nouns(
    centers: NDArray[Any],
    nouns: NDArray[Any],
    *,
    method: Literal["tac", "gradnorm"] = "tac",
    n_per_center: int = N_PER_CENTER,
) -> NDArray[np.intp]:
    """Return the indices of each centre's best nouns, ascending; the first of equal nouns wins."""
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
    """A temperature and a score for nouns; larger is better.

    The score gets the weights ``exp((noun . centre - noun . best centre) / tau)``, with 0 for the
    best centre. Their sum keeps digits that ``1 - s_max`` would lose in float32.
    """

    tau: float
    score: Callable[[NDArray[np.float32]], NDArray[np.float32]]


def _largest_probability(others: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(1 / (1 + others.sum(axis=1)))


def _negative_gradient(others: NDArray[np.float32]) -> NDArray[np.float32]:
    # The norm of the published gradient, || s - e_max || ||noun||, for nouns of length one.
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
    """Return the best centre of each noun, and the noun's score there."""
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
            raise ParameterError(
                "`noun_features` is empty. Pass the features of at least one noun."
            )
        if np.ndim(noun_features[0]) == 2:
            return [np.asarray(prompt) for prompt in noun_features]
    features = np.asarray(noun_features)
    return list(features) if features.ndim == 3 and len(features) else [features]


def _are_unit_rows(features: NDArray[Any]) -> bool:
    """Tell whether rows are what `unit_rows` makes of them, up to rounding."""
    # The squares of entries that are NaN or infinite do not add up to 1.
    return features.dtype == np.float32 and bool(
        np.all(np.abs(np.einsum("ij,ij->i", features, features) - 1) < _ROUNDING)
    )


def _unit_block(features: NDArray[Any]) -> NDArray[np.float32]:
    checked = check_array(features, dtype=_FLOATS, input_name="noun_features")
    return unit_rows(checked).astype(np.float32, copy=False)
