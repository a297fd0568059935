"""A fitted estimator as arrays, and back: never as a pickle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.graphs import choose_neighbors
from nouncut.method.placement import Placement

_PREFIX = "model_"
MODEL_ARRAYS = tuple(
    _PREFIX + name
    for name in (
        "images",
        "degrees",
        "mean_degrees",
        "weights",
        "eigenvectors",
        "centers",
        "noun_features",
        "tau",
        "n_neighbors",
        "shifted",
    )
)


def fitted_arrays(model: NTKSpectralClustering) -> dict[str, NDArray[Any]]:
    """Return what a fitted estimator needs, beside the images' features, to place new images."""
    placement = model._placement
    arrays = {
        "images": model._fit_images,
        "degrees": placement.degrees,
        "weights": placement.weights,
        "eigenvectors": placement.vectors,
        "centers": model.cluster_centers_,
        "n_neighbors": np.asarray(placement.n_neighbors),
        "shifted": np.asarray(placement.shifted),
    }
    if placement.mean_degrees is not None:
        arrays["mean_degrees"] = placement.mean_degrees
    if placement.prompts:
        arrays["noun_features"] = np.stack(placement.prompts)
        arrays["tau"] = np.asarray(placement.tau)
    return {_PREFIX + name: array for name, array in arrays.items()}


def restore_model(
    arrays: dict[str, NDArray[Any]],
    visual: NDArray[Any],
    semantic: NDArray[Any] | None,
    embedding: NDArray[Any],
    labels: NDArray[np.intp],
    *,
    n_jobs: int | None = -1,
) -> NTKSpectralClustering:
    """Return an estimator that places new images as the fitted one did."""
    state = {name.removeprefix(_PREFIX): array for name, array in arrays.items()}
    images, n_clusters = state["images"], len(state["centers"])
    features = unit_rows(np.asarray(visual, dtype=np.float32))
    meaning = features if semantic is None else unit_rows(np.asarray(semantic, dtype=np.float32))
    model = NTKSpectralClustering(n_clusters, n_jobs=n_jobs)
    model.n_features_in_ = visual.shape[1]
    model._has_semantic_features = semantic is not None
    model._fit_rows = (features,) if semantic is None else (features, meaning)
    # Runs of version 0.1.0 lack the last three.
    nearest = state.get("n_neighbors", choose_neighbors(len(images), n_clusters) // 2)
    model._placement = Placement(
        features[images],
        meaning[images],
        list(state.get("noun_features", ())),
        float(state.get("tau", 1.0)),
        int(nearest),
        bool(state.get("shifted", False)),
        np.asarray(state["degrees"]),
        np.asarray(state["weights"]),
        state.get("mean_degrees"),
        state["eigenvectors"],
    )
    model.cluster_centers_ = np.asarray(state["centers"])
    model.embedding_, model.labels_ = embedding, np.asarray(labels)
    return model
