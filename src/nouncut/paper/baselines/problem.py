"""What a method is given: one data set with one model's features."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.method.choices import Symmetry


@dataclass(frozen=True)
class Problem:
    """One data set with one model's features.

    Images are compared with each other by `visual` and with nouns by `semantic`; models of the
    CLIP family have one space for both, and the two are the same array.
    """

    visual: NDArray[Any]
    semantic: NDArray[Any]
    n_clusters: int
    # Positive nouns of TAC's filter: one array per prompt.
    nouns: list[NDArray[Any]]
    # All nouns to choose from.
    candidates: NDArray[Any]
    class_features: NDArray[Any]
    # None: choose the temperature from the images.
    tau: float | None
    # Positive nouns of GradNorm's filter; empty where no method needs them.
    gradnorm_nouns: list[NDArray[Any]] = field(default_factory=list)
    # Which neighbours our method's graphs keep.
    neighbors: Symmetry = "union"
    # The images that heads are trained on; None: the images themselves.
    train_visual: NDArray[Any] | None = None
    train_semantic: NDArray[Any] | None = None
    # Some published settings depend on the data set.
    dataset: str = ""

    @property
    def family(self) -> str:
        """The data set without its part: "imagenet-c" of ImageNet-C/fog/3."""
        return self.dataset.split("/")[0].lower()

    @cached_property
    def unit_visual(self) -> NDArray[np.float32]:
        """Visual features, rows of length one."""
        return unit_features(self.visual)

    @cached_property
    def unit_semantic(self) -> NDArray[np.float32]:
        """Semantic features, rows of length one."""
        return unit_features(self.semantic)

    @cached_property
    def unit_train_visual(self) -> NDArray[np.float32]:
        """Visual features of the training images, rows of length one."""
        return self.unit_visual if self.train_visual is None else unit_features(self.train_visual)

    @cached_property
    def unit_train_semantic(self) -> NDArray[np.float32]:
        """Semantic features of the training images, rows of length one."""
        if self.train_semantic is None:
            return self.unit_semantic
        return unit_features(self.train_semantic)


def unit_features(features: NDArray[Any]) -> NDArray[np.float32]:
    """Scale rows to length one, in single precision."""
    return unit_rows(features).astype(np.float32, copy=False)
