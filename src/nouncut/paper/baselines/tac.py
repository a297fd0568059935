"""TAC without training: images beside the nouns they point at.

Every image gets a text counterpart, a mean of noun features weighted by how well they suit it,
and the two are clustered side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nouncut.compute.checks import check_choice
from nouncut.compute.rows import unit_rows
from nouncut.method.kernel import noun_probabilities
from nouncut.paper.baselines.kmeans import SphericalKMeans
from nouncut.paper.baselines.method import Baseline, unit_array
from nouncut.paper.baselines.spectral import KERNEL_NAMES, KernelName, KernelSpectralClustering
from nouncut.words.filters import mean_prompt_features

# The published temperature of the retrieval.
TAC_TAU = 0.005


class TAC(Baseline):
    """Cluster images by their features beside those of their text counterparts [1]_."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        method: Literal["kmeans"] | KernelName = "kmeans",
        tau: float = TAC_TAU,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.tau = tau
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        noun_features: ArrayLike | Sequence[ArrayLike],
        semantic_features: ArrayLike | None = None,
    ) -> Self:
        """Cluster images."""
        check_choice("method", self.method, ("kmeans", *KERNEL_NAMES))
        images = unit_array(X)
        semantic = (
            images
            if semantic_features is None
            else unit_array(semantic_features, "semantic_features")
        )
        self.counterparts_ = text_counterparts(
            semantic, mean_prompt_features(noun_features), self.tau
        )
        both = np.hstack([images, self.counterparts_])
        self.labels_ = self._clusterer().fit_predict(both)
        return self

    def _clusterer(self) -> SphericalKMeans | KernelSpectralClustering:
        if self.method == "kmeans":
            return SphericalKMeans(self.n_clusters, random_state=self.random_state, n_jobs=-1)
        return KernelSpectralClustering(
            self.n_clusters, kernel=self.method, random_state=self.random_state
        )


def text_counterparts(
    semantic: NDArray[np.float32], nouns: NDArray[np.float32], tau: float = TAC_TAU
) -> NDArray[np.float32]:
    """Return the mean of the nouns that every image points at."""
    weights = noun_probabilities(semantic, [nouns], tau)[0]
    return np.asarray(unit_rows(weights @ nouns))
