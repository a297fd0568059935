"""Checks of the arrays and numbers that users pass to the estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from nouncut.compute.checks import (
    check_choice,
    check_nouns,
    check_positive,
    check_weight,
    warn_user,
)
from nouncut.compute.rows import join_rows, unit_rows
from nouncut.errors import ParameterError
from nouncut.method.choices import (
    Affinity,
    Assignment,
    Combination,
    LamScale,
    Solver,
    Symmetry,
)

_FLOATS = (np.float64, np.float32)
# Relative to the largest weight of a graph; more than rounding.
_ASYMMETRY = 1e-6
_CHOICES = {
    "affinity": Affinity,
    "lam_scale": LamScale,
    "neighbors": Symmetry,
    "ensemble": Combination,
    "solver": Solver,
    "assign_labels": Assignment,
}
_WHOLE = ("n_clusters", "n_neighbors", "max_iter", "max_inner_iter")
_REAL = ("tau", "mu", "lam", "tol", "max_memory")
# Values that stand for a number.
_SPECIAL = {"n_clusters": "auto", "n_neighbors": "auto", "tau": "auto", "max_memory": None}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Check the parameters of `NTKSpectralClustering`."""
    for name, choices in _CHOICES.items():
        check_choice(name, parameters[name], get_args(choices))
    for names, kind in ((_WHOLE, Integral), (_REAL, Real)):
        given = {name: parameters[name] for name in names}
        check_positive({n: v for n, v in given.items() if not _is_special(n, v)}, kind)
    check_weight("semantic_weight", parameters["semantic_weight"])


def check_image_features(
    estimator: Any, X: ArrayLike, semantic_features: ArrayLike | None, n_columns: int | None = None
) -> tuple[NDArray[np.float32], ...]:
    """Return unit rows of X, and of `semantic_features` if there are any.

    `n_columns` of the semantic features are known after the fit.
    """
    is_fit = n_columns is None
    X = _joined(X)
    check_numbers(X, "X")
    checked = validate_data(
        estimator,
        X,
        accept_sparse="csr",
        dtype=_FLOATS,
        ensure_min_samples=2 if is_fit else 1,
        reset=is_fit,
    )
    features = _unit_features(checked, "X")
    if semantic_features is None:
        return (features,)
    return features, _check_semantic_features(semantic_features, len(features), n_columns)


def _joined(X: Any) -> Any:
    """Return one array of features; several are compared by the mean of their cosines."""
    is_several = isinstance(X, list | tuple) and len(X) > 0
    if not is_several or not all(isinstance(p, np.ndarray) and p.ndim == 2 for p in X):
        return X
    if len({len(part) for part in X}) > 1:
        counts = ", ".join(str(len(part)) for part in X)
        raise ParameterError(
            f"`X` holds arrays of {counts} rows. Pass features of the same images, one row each."
        )
    for part in X:
        check_numbers(part, "X")
    return join_rows([check_array(part, dtype=_FLOATS, input_name="X") for part in X])


def check_noun_features(
    noun_features: ArrayLike | Sequence[ArrayLike] | None,
    nouns: Sequence[str] | None,
    n_features: int,
) -> list[NDArray[np.float32]]:
    """Return the unit noun features of every prompt; an empty list without nouns."""
    if noun_features is None:
        if nouns is not None:
            raise ParameterError("`nouns` were given without `noun_features`.")
        return []
    prompts = _split_prompts(noun_features)
    checked = [_check_prompt(array, name, n_features) for name, array in prompts]
    sizes = [len(array) for array in checked]
    if len(set(sizes)) > 1:
        raise ParameterError(
            f"The arrays of `noun_features` have different numbers of nouns: {sizes}. Encode the "
            "same nouns with every prompt."
        )
    if nouns is not None:
        check_nouns(nouns, len(checked[0]))
    return checked


def check_numbers(array: Any, name: str) -> None:
    """Refuse arrays of text, and masked arrays, whose hidden entries would be used."""
    if isinstance(array, np.ma.MaskedArray):
        raise ParameterError(
            f"`{name}` is a masked array: fill the masked entries, or drop their rows."
        )
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is None and isinstance(array, list | tuple) and not any(map(issparse, array)):
        kind = np.asarray(array, dtype=None if _is_regular(array) else object).dtype.kind
    if kind in ("U", "S"):
        raise ParameterError(f"`{name}` holds text, not numbers: convert it first.")


def check_size(
    n_images: int, n_distinct: int, n_clusters: int | str, n_neighbors: int | None
) -> int | None:
    """Return the number of clusters that the images can form; None if it is to be found."""
    if n_neighbors is not None and n_neighbors >= n_images:
        warn_user(
            f"{n_neighbors} neighbours were asked for, but there are only {n_images} images: every "
            "image is compared with all others."
        )
    if isinstance(n_clusters, str):  # "auto"
        return None if n_distinct > 1 else 1
    if n_images < n_clusters:
        raise ParameterError(
            f"`n_clusters` is {n_clusters}, but there are only {n_images} images: ask for fewer "
            "clusters."
        )
    if n_distinct < n_clusters:
        warn_user(
            f"Only {n_distinct} of the {n_images} images differ from each other: they form "
            f"{n_distinct} cluster(s), not {n_clusters}."
        )
    return int(min(n_distinct, n_clusters))


def check_earlier_labels(labels: NDArray[Any] | None, n_images: int) -> None:
    """Raise an error unless there is one whole number per image, or nothing at all."""
    if labels is not None and (labels.shape != (n_images,) or labels.dtype.kind not in "iu"):
        raise ParameterError(
            f"`earlier_labels` must be {n_images:,} whole numbers, one per image and -1 for new "
            f"images; got an array of {labels.dtype} and shape {labels.shape}."
        )


def check_graph(graph: Any) -> csr_array:
    """Check a precomputed graph, and drop its diagonal."""
    rows, columns = graph.shape
    if rows != columns:
        raise ParameterError(f"The graph in `X` must be square; its shape is {graph.shape}.")
    found = csr_array(graph, dtype=np.float64)
    if found.nnz and found.data.min() < 0:
        raise ParameterError("The graph in `X` has negative weights: set them to zero.")
    if abs(found - found.T).max() > _ASYMMETRY * abs(found).max():
        raise ParameterError("The graph in `X` is not symmetric: pass (X + X.T) / 2.")
    found = csr_array(found.maximum(found.T))
    found.setdiag(0)
    found.eliminate_zeros()
    found.sort_indices()
    return found


def warn_of_excluded(n_excluded: int, n_isolated: int, n_images: int, n_clusters: int) -> None:
    """Warn of images that were not cut with the rest."""
    if n_isolated and n_images > 1:
        warn_user(
            f"{n_isolated} of {n_images} images have no neighbour: no other image looks like them "
            "and shares their nouns. They were placed by looks alone."
        )
    if n_excluded > n_isolated:
        warn_user(
            f"The images fall into more than {n_clusters} groups that have nothing in common. "
            f"{n_excluded - n_isolated} images of the smallest joined the nearest of the others."
        )


def _unit_features(features: Any, name: str) -> NDArray[np.float32]:
    """Return validated features as unit rows; warn if rows are zero."""
    dense = features.toarray() if issparse(features) else features
    unit = unit_rows(dense).astype(np.float32, copy=False)
    empty = np.flatnonzero(~unit.any(axis=1))
    if len(empty):
        warn_user(
            f"The features of {len(empty)} image(s) are all zero (rows {_listed(empty)} of "
            f"{name}). They join the largest cluster: remove them, or encode them again."
        )
    return unit


def _check_semantic_features(
    semantic_features: ArrayLike, n_images: int, n_features: int | None
) -> NDArray[np.float32]:
    check_numbers(semantic_features, "semantic_features")
    checked = check_array(
        semantic_features, accept_sparse="csr", dtype=_FLOATS, input_name="semantic_features"
    )
    if checked.shape[0] != n_images:
        raise ParameterError(
            f"`semantic_features` has {checked.shape[0]} rows, but `X` has {n_images}: "
            "both must describe the same images in the same order."
        )
    if n_features is not None and checked.shape[1] != n_features:
        raise ParameterError(
            f"`semantic_features` has {checked.shape[1]} columns, but the estimator was fitted "
            f"with {n_features}."
        )
    return _unit_features(checked, "semantic_features")


def _is_special(name: str, value: Any) -> bool:
    # An array compares with "auto" entry by entry.
    special = _SPECIAL.get(name, ...)
    return value is None if special is None else isinstance(value, str) and value == special


def _is_regular(array: Any) -> bool:
    try:
        np.asarray(array)
    except ValueError:
        return False
    return True


def _split_prompts(noun_features: Any) -> list[tuple[str, Any]]:
    """Return the arrays of all prompts, each with the name that messages use."""
    is_list = isinstance(noun_features, list | tuple)
    if is_list and len(noun_features) == 0:
        raise ParameterError(_no_nouns("noun_features"))
    if getattr(noun_features, "ndim", None) == 3 or (
        is_list and (issparse(noun_features[0]) or np.ndim(noun_features[0]) == 2)
    ):
        return [(f"noun_features[{b}]", array) for b, array in enumerate(noun_features)]
    return [("noun_features", noun_features)]


def _check_prompt(array: Any, name: str, n_features: int) -> NDArray[np.float32]:
    check_numbers(array, name)
    checked = check_array(
        array, accept_sparse="csr", dtype=_FLOATS, input_name=name, ensure_min_samples=0
    )
    if checked.shape[0] == 0:
        raise ParameterError(_no_nouns(name))
    if checked.shape[1] != n_features:
        raise ParameterError(
            f"`{name}` has {checked.shape[1]} columns, but the images' features have {n_features}: "
            "nouns and images must be encoded by the same model. If the nouns belong to another "
            "space than `X`, pass the images' features in that space as `semantic_features`."
        )
    dense = checked.toarray() if issparse(checked) else checked
    empty = np.flatnonzero(~dense.any(axis=1))
    if len(empty):
        raise ParameterError(f"`{name}` has rows of zeros ({_listed(empty)}): remove these nouns.")
    return unit_rows(dense).astype(np.float32)


def _no_nouns(name: str) -> str:
    return f"`{name}` is empty. Pass `noun_features=None` to cluster by appearance alone."


def _listed(indices: NDArray[Any]) -> str:
    shown = ", ".join(str(index) for index in indices[:5])
    return f"{shown}, ..." if len(indices) > 5 else shown
