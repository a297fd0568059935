"""A fitted estimator as arrays, and back: never as a pickle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.affinity import unit_rows
from nouncut.estimator import NTKSpectralClustering
from nouncut.spectral import Eigenpairs

_PREFIX = "model_"
MODEL_ARRAYS = tuple(
    _PREFIX + name
    for name in (
        "images",
        "degrees",
        "weights",
        "eigenvalues",
        "eigenvectors",
        "centers",
        "noun_features",
        "tau",
    )
)


def fitted_arrays(model: NTKSpectralClustering) -> dict[str, NDArray[Any]]:
    """Return what a fitted estimator needs, beside the images' features, to place new images.

    Parameters
    ----------
    model : NTKSpectralClustering
        Fitted.

    Returns
    -------
    dict of str to ndarray
        By name.

    Examples
    --------
    >>> from nouncut import NTKSpectralClustering
    >>> from nouncut.evaluation import make_clip_like
    >>> from nouncut.pipeline.fitted import fitted_arrays
    >>> data = make_clip_like(n_images=60, n_clusters=2, random_state=0)
    >>> model = NTKSpectralClustering(2, n_neighbors=9, random_state=0).fit(data.features)
    >>> fitted_arrays(model)["model_eigenvectors"].shape
    (60, 2)
    """
    arrays = {
        "images": model._fit_images,
        "degrees": np.stack(model._degrees),
        "weights": model._graph_weights,
        "eigenvalues": model._eigenpairs.values,
        "eigenvectors": model._eigenpairs.vectors,
        "centers": model.cluster_centers_,
    }
    if model._noun_features:
        arrays["noun_features"] = np.stack(model._noun_features)
        arrays["tau"] = np.asarray(model.tau_)
    return {_PREFIX + name: array for name, array in arrays.items()}


def restore_model(
    arrays: dict[str, NDArray[Any]],
    visual: NDArray[Any],
    semantic: NDArray[Any] | None,
    *,
    n_neighbors: int,
    n_jobs: int | None = None,
) -> NTKSpectralClustering:
    """Return an estimator that places new images as the fitted one did.

    Parameters
    ----------
    arrays : dict of str to ndarray
        From `fitted_arrays`.
    visual : ndarray of shape (n_images, d)
        What the estimator was fitted to.
    semantic : ndarray of shape (n_images, e) or None
        The semantic features it was fitted to, if any.
    n_neighbors : int
        Its parameter.
    n_jobs : int, optional
        Threads; all cores by default.

    Returns
    -------
    NTKSpectralClustering
        It can `embed` and `predict`.

    Examples
    --------
    >>> from nouncut import NTKSpectralClustering
    >>> from nouncut.evaluation import make_clip_like
    >>> from nouncut.pipeline.fitted import fitted_arrays, restore_model
    >>> data = make_clip_like(n_images=60, n_clusters=2, random_state=0)
    >>> model = NTKSpectralClustering(2, n_neighbors=9, random_state=0).fit(data.features)
    >>> again = restore_model(fitted_arrays(model), data.features, None, n_neighbors=9)
    >>> bool((again.predict(data.features) == model.predict(data.features)).all())
    True
    """
    state = {name.removeprefix(_PREFIX): array for name, array in arrays.items()}
    images = state["images"]
    model = NTKSpectralClustering(len(state["centers"]), n_neighbors=n_neighbors, n_jobs=n_jobs)
    model.n_features_in_ = visual.shape[1]
    model._has_semantic_features = semantic is not None
    model._fit_images = images
    model._fit_features = unit_rows(np.asarray(visual[images], dtype=np.float32))
    model._fit_semantic = (
        model._fit_features
        if semantic is None
        else unit_rows(np.asarray(semantic[images], dtype=np.float32))
    )
    model._degrees = list(state["degrees"])
    model._graph_weights = np.asarray(state["weights"])
    model._eigenpairs = Eigenpairs(state["eigenvalues"], state["eigenvectors"])
    model.cluster_centers_ = np.asarray(state["centers"])
    model._noun_features = list(state.get("noun_features", ()))
    model.tau_ = float(state["tau"]) if "tau" in state else None
    # Marks it as fitted; the labels of the fitted images are the run's.
    model.labels_ = np.empty(0, dtype=np.intp)
    return model
