"""Checks on what users pass in; every complaint names the argument and the remedy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array

from nouncut.compute.rows import unit_rows

_FLOATS = (np.float64, np.float32)
# Relative to the largest weight of a graph: more than rounding.
_ASYMMETRY = 1e-6


def unit_features(features: Any, name: str) -> NDArray[np.float32]:
    """Return validated features as unit rows, and warn of rows without a direction."""
    dense = features.toarray() if issparse(features) else features
    unit = unit_rows(dense).astype(np.float32, copy=False)
    empty = np.flatnonzero(~unit.any(axis=1))
    if len(empty):
        warnings.warn(
            f"{name} has {len(empty)} row(s) of zeros ({_listed(empty)}), which have no "
            "direction: they join the largest cluster. Remove them or encode them again.",
            stacklevel=3,
        )
    return unit


def check_semantic_features(
    semantic_features: ArrayLike, n_images: int, n_features: int | None = None
) -> NDArray[np.float32]:
    """Check and normalise the image features that are compared with nouns."""
    check_numbers(semantic_features, "semantic_features")
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
    """Check and normalise noun features: one array, or one per prompt."""
    prompts = _split_prompts(noun_features)
    checked = [_check_prompt(array, name, n_features) for name, array in prompts]
    sizes = [len(array) for array in checked]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"The prompts have different numbers of nouns: {sizes}. Encode the same nouns with "
            "every prompt."
        )
    return checked


def check_numbers(array: Any, name: str) -> None:
    """Refuse arrays of text, and masked arrays, whose hidden entries would be used."""
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError(f"{name} is a masked array: fill the masked entries, or drop their rows.")
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is None and isinstance(array, list | tuple) and not any(map(issparse, array)):
        kind = np.asarray(array, dtype=None if _is_regular(array) else object).dtype.kind
    if kind in ("U", "S"):
        raise ValueError(f"{name} holds text, not numbers: convert it first.")


def check_size(n_images: int, n_distinct: int, n_clusters: Any, n_neighbors: Any) -> int | None:
    """Check that there are enough images, and return how many clusters they can make."""
    if n_neighbors != "auto" and n_neighbors >= n_images:
        warnings.warn(
            f"{n_neighbors} neighbours were asked for, but there are {n_images} images: every "
            "image is compared with all others.",
            stacklevel=3,
        )
    if n_clusters == "auto":
        return None if n_distinct > 1 else 1
    if n_images < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than n_samples={n_images} images: ask for fewer "
            "clusters."
        )
    if n_distinct < n_clusters:
        warnings.warn(
            f"Only {n_distinct} of the {n_images} images differ from each other: they make "
            f"{n_distinct} cluster(s), not {n_clusters}.",
            stacklevel=3,
        )
    return int(min(n_distinct, n_clusters))


def check_graph(graph: Any) -> csr_array:
    """Check a ready-made graph, and drop its diagonal."""
    rows, columns = graph.shape
    if rows != columns:
        raise ValueError(f"A graph has as many columns as rows; X has shape {graph.shape}.")
    found = csr_array(graph, dtype=np.float64)
    if found.nnz and found.data.min() < 0:
        raise ValueError("The graph in X has negative weights: affinities must not be negative.")
    if abs(found - found.T).max() > _ASYMMETRY * abs(found).max():
        raise ValueError("The graph in X is not symmetric: pass (X + X.T) / 2.")
    found = csr_array(found.maximum(found.T))
    found.setdiag(0)
    found.eliminate_zeros()
    found.sort_indices()
    return found


def warn_of_strays(n_strays: int, n_isolated: int, n_images: int, n_clusters: int) -> None:
    """Warn of images that were not cut with the rest."""
    if n_isolated and n_images > 1:
        warnings.warn(
            f"{n_isolated} of {n_images} images have no neighbour: nothing looks like them and "
            "shares their nouns. They were placed by looks alone.",
            stacklevel=5,
        )
    if n_strays > n_isolated:
        warnings.warn(
            f"The images fall into more than {n_clusters} groups that have nothing in common. "
            f"{n_strays - n_isolated} images of the smallest joined the nearest of the others.",
            stacklevel=5,
        )


def _is_regular(array: Any) -> bool:
    try:
        np.asarray(array)
    except ValueError:
        return False
    return True


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
    check_numbers(array, name)
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
