"""Checks on what users pass in; every complaint names the argument and the remedy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from nouncut.affinity import unit_rows

_FLOATS = (np.float64, np.float32)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless a parameter has one of its permitted values.

    Parameters
    ----------
    name : str
        The parameter.
    value : object
        Its value.
    choices : sequence of str
        What is permitted.

    Examples
    --------
    >>> from nouncut.inputs import check_choice
    >>> check_choice("solver", "fast", ("exact", "spectral"))
    Traceback (most recent call last):
    ...
    ValueError: solver must be one of 'exact', 'spectral'; got 'fast'.
    """
    if not isinstance(value, str) or value not in choices:
        permitted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {permitted}; got {value!r}.")


def check_positive(values: Mapping[str, object], kind: type) -> None:
    """Raise unless parameters are positive, finite numbers of a kind.

    Parameters
    ----------
    values : mapping
        Parameters by name.
    kind : type
        `numbers.Integral` or `numbers.Real`.

    Examples
    --------
    >>> from numbers import Real
    >>> from nouncut.inputs import check_positive
    >>> check_positive({"tau": 0}, Real)
    Traceback (most recent call last):
    ...
    ValueError: tau must be a number above 0; got 0.
    """
    wanted = "a whole number of at least 1" if kind is Integral else "a number above 0"
    for name, value in values.items():
        is_number = isinstance(value, kind) and not isinstance(value, bool)
        if not is_number or not 0 < float(value) < np.inf:  # type: ignore[arg-type]
            raise ValueError(f"{name} must be {wanted}; got {value!r}.")


def unit_features(features: Any, name: str) -> NDArray[np.float32]:
    """Return validated features as unit rows, and warn of rows without a direction.

    Parameters
    ----------
    features : ndarray or sparse array of shape (n_images, d)
        Finite features.
    name : str
        The argument they came as.

    Returns
    -------
    ndarray of shape (n_images, d)
        Unit rows in float32, zero where the features are.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.inputs import unit_features
    >>> unit_features(np.array([[3.0, 4.0]]), "X")
    array([[0.6, 0.8]], dtype=float32)
    """
    dense = features.toarray() if issparse(features) else features
    unit = unit_rows(dense).astype(np.float32, copy=False)
    empty = np.flatnonzero(~unit.any(axis=1))
    if len(empty):
        warnings.warn(
            f"{name} has {len(empty)} row(s) of zeros ({_listed(empty)}), which no direction can "
            "be told of: they join the largest cluster. Remove them or encode them again.",
            stacklevel=3,
        )
    return unit


def check_semantic_features(
    semantic_features: ArrayLike, n_images: int, n_features: int | None = None
) -> NDArray[np.float32]:
    """Check and normalise the image features that are compared with nouns.

    Parameters
    ----------
    semantic_features : array-like of shape (n_images, d)
        Features.
    n_images : int
        How many rows there must be.
    n_features : int, optional
        How many columns there must be.

    Returns
    -------
    ndarray of shape (n_images, d)
        Unit rows in float32.

    Examples
    --------
    >>> from nouncut.inputs import check_semantic_features
    >>> check_semantic_features([[0.0, 2.0]], 1)
    array([[0., 1.]], dtype=float32)
    """
    checked = check_array(
        semantic_features, accept_sparse="csr", dtype=_FLOATS, input_name="semantic_features"
    )
    if checked.shape[0] != n_images:
        raise ValueError(
            f"semantic_features has {checked.shape[0]} rows, but X has {n_images}: "
            "both must describe the same images in the same order."
        )
    if n_features is not None and checked.shape[1] != n_features:
        raise ValueError(
            f"semantic_features has {checked.shape[1]} columns, but the estimator was fitted "
            f"with {n_features}."
        )
    return unit_features(checked, "semantic_features")


def check_noun_features(
    noun_features: ArrayLike | Sequence[ArrayLike], n_features: int
) -> list[NDArray[np.float32]]:
    """Check and normalise noun features: one array, or one per prompt.

    Parameters
    ----------
    noun_features : array-like of shape (n_nouns, d) or sequence of such
        Features.
    n_features : int
        The dimension of the images' features that they are compared with.

    Returns
    -------
    list of ndarray of shape (n_nouns, d)
        Unit rows in float32, one array per prompt.

    Examples
    --------
    >>> from nouncut.inputs import check_noun_features
    >>> check_noun_features([[0.0, 2.0]], 2)
    [array([[0., 1.]], dtype=float32)]
    """
    prompts = _split_prompts(noun_features)
    checked = [_check_prompt(array, name, n_features) for name, array in prompts]
    sizes = [len(array) for array in checked]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"The prompts have different numbers of nouns: {sizes}. Encode the same nouns with "
            "every prompt."
        )
    return checked


def check_nouns(nouns: Sequence[str], n_nouns: int) -> list[str]:
    """Check that there is one word for every row of the noun features.

    Parameters
    ----------
    nouns : sequence of str
        The words.
    n_nouns : int
        How many there must be.

    Returns
    -------
    list of str
        The words.

    Examples
    --------
    >>> from nouncut.inputs import check_nouns
    >>> check_nouns(("cat", "dog"), 2)
    ['cat', 'dog']
    """
    if len(nouns) != n_nouns:
        raise ValueError(f"nouns has {len(nouns)} words, but noun_features {n_nouns} rows.")
    return [str(noun) for noun in nouns]


def check_size(
    features: NDArray[Any], semantic: NDArray[Any], n_clusters: int, n_neighbors: int
) -> int:
    """Check that there are enough images, and return how many clusters they can make.

    Parameters
    ----------
    features, semantic : ndarray of shape (n_images, d)
        Visual and semantic features.
    n_clusters, n_neighbors : int
        What was asked for.

    Returns
    -------
    int
        `n_clusters`, or the number of distinct images where that is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.inputs import check_size
    >>> check_size(np.eye(40), np.eye(40), n_clusters=3, n_neighbors=30)
    3
    """
    n_images = len(features)
    if n_images < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than n_samples={n_images} images: ask for fewer "
            "clusters."
        )
    if n_neighbors >= n_images:
        warnings.warn(
            f"n_neighbors={n_neighbors} is not less than the {n_images} images: every image is "
            "compared with all others.",
            stacklevel=3,
        )
    n_distinct = _count_distinct(features, semantic, limit=n_clusters)
    if n_distinct < n_clusters:
        warnings.warn(
            f"There are only {n_distinct} distinct images for n_clusters={n_clusters}: they make "
            f"{n_distinct} cluster(s).",
            stacklevel=3,
        )
    return n_distinct


def check_strays(n_strays: int, n_isolated: int, n_images: int, n_clusters: int) -> None:
    """Warn of images that cannot be cut with the rest; raise where too few can.

    Parameters
    ----------
    n_strays : int
        Images that were left out of the cut.
    n_isolated : int
        Those of them that have no neighbour at all.
    n_images, n_clusters : int
        The size of the problem.

    Examples
    --------
    >>> from nouncut.inputs import check_strays
    >>> check_strays(0, 0, n_images=100, n_clusters=5)
    """
    remedy = 'a larger n_neighbors or neighbors="union" connects them'
    if n_images - n_strays < n_clusters:
        raise ValueError(
            f"Only {n_images - n_strays} of {n_images} images have a neighbour, too few for "
            f"{n_clusters} clusters: {remedy}; a larger tau helps where noun probabilities do "
            "not overlap."
        )
    if n_isolated:
        warnings.warn(
            f"{n_isolated} of {n_images} images have no neighbour and were assigned by their "
            f"kernel values: {remedy}.",
            stacklevel=4,
        )
    if n_strays > n_isolated:
        warnings.warn(
            f"The graph falls apart into more than {n_clusters} components. "
            f"{n_strays - n_isolated} images of the smallest were assigned by their kernel "
            f"values: {remedy}.",
            stacklevel=4,
        )


def _count_distinct(features: NDArray[Any], semantic: NDArray[Any], limit: int) -> int:
    """Return how many images differ from each other, counting no further than a limit."""
    seen: set[bytes] = set()
    for visual, meaning in zip(features, semantic, strict=True):
        seen.add(visual.tobytes() + meaning.tobytes())
        if len(seen) == limit:
            break
    return len(seen)


def _split_prompts(noun_features: Any) -> list[tuple[str, Any]]:
    is_list = isinstance(noun_features, list | tuple)
    if is_list and len(noun_features) == 0:
        raise ValueError(_NO_NOUNS.format(name="noun_features"))
    if getattr(noun_features, "ndim", None) == 3 or (
        is_list and (issparse(noun_features[0]) or np.ndim(noun_features[0]) == 2)
    ):
        return [(f"noun_features[{b}]", array) for b, array in enumerate(noun_features)]
    return [("noun_features", noun_features)]


_NO_NOUNS = "{name} is empty (0 nouns). Pass noun_features=None to cluster by appearance alone."


def _check_prompt(array: Any, name: str, n_features: int) -> NDArray[np.float32]:
    checked = check_array(
        array, accept_sparse="csr", dtype=_FLOATS, input_name=name, ensure_min_samples=0
    )
    if checked.shape[0] == 0:
        raise ValueError(_NO_NOUNS.format(name=name))
    if checked.shape[1] != n_features:
        raise ValueError(
            f"{name} has {checked.shape[1]} columns, but the images' features have {n_features}: "
            "nouns and images must be encoded by the same model. Where the nouns belong to "
            "another space than X, pass the images' features in that space as semantic_features."
        )
    dense = checked.toarray() if issparse(checked) else checked
    empty = np.flatnonzero(~dense.any(axis=1))
    if len(empty):
        raise ValueError(f"{name} has rows of zeros ({_listed(empty)}): remove these nouns.")
    return unit_rows(dense).astype(np.float32)


def _listed(indices: NDArray[Any]) -> str:
    shown = ", ".join(str(index) for index in indices[:5])
    return f"{shown}, ..." if len(indices) > 5 else shown
