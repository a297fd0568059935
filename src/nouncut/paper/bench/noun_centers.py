"""The centres of the training images that noun filters compare nouns with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import atomic_file, explained_writing
from nouncut.errors import InputError
from nouncut.paper.baselines.kmeans import spherical_centers
from nouncut.paper.baselines.problem import unit_features
from nouncut.paper.datasets.catalog import find_name
from nouncut.words.filters import count_centers

# GradNorm's numbers of centres; on other data sets it has TAC's rule.
_GRADNORM_CENTERS = {
    "cifar-10": 250,
    "cifar-20": 200,
    "stl-10": 30,
    "imagenet-10": 50,
    "imagenet-dogs": 50,
    "dtd": 180,
    "ucf-101": 303,
    "imagenet-1k": 2000,
    # The same classes, and by default the same training images.
    "imagenet-c": 2000,
    "imagenet-v2": 2000,
    "imagenet-s": 2000,
}


def filter_centers(
    method: Literal["tac", "gradnorm"], dataset: str, n_images: int, n_clusters: int
) -> int:
    """Return a filter's number of centres for a data set."""
    n_centers = count_centers(n_images, n_clusters)
    if method == "gradnorm":
        n_centers = _GRADNORM_CENTERS.get(find_name(dataset) or "", n_centers)
    return min(n_centers, n_images)


def kept_centers(
    path: Path, load: Callable[[], NDArray[Any]], n_centers: int, random_state: int
) -> NDArray[np.float32]:
    """Read centres from a file, or load the images' features, find their centres and keep them."""
    if path.exists():
        kept: NDArray[np.float32] = np.load(path, allow_pickle=False)
        return kept
    units = unit_features(load())
    has_direction = units.any(axis=1)
    if not has_direction.any():
        raise InputError("The features of all images are zero. Choose another `model`.")
    # A copy of ImageNet's features takes 2.6 GB.
    units = units if has_direction.all() else units[has_direction]
    centers = spherical_centers(units, n_centers, random_state)
    with explained_writing("results", path.parent, "choose another `output`"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            np.save(file, centers, allow_pickle=False)
    return centers
