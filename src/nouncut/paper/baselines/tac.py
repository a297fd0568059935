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
    """Cluster images by their features beside those of their text counterparts [1]_.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    method : str, default="kmeans"
        "kmeans" for spherical k-means, or the kernel of a spectral clustering: "linear",
        "polynomial", "rbf", "exponential", "laplacian" or "sigmoid".
    tau : float, default=0.005
        Temperature of the softmax over nouns.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Attributes
    ----------
    labels_ : ndarray of shape (n_images,)
        Cluster of every image; 0 is the largest.
    counterparts_ : ndarray of shape (n_images, e)
        Unit text counterparts.

    References
    ----------
    .. [1] Li et al., "Image Clustering with External Guidance", ICML 2024.

    Examples
    --------
    >>> from nouncut.paper.baselines.tac import TAC
    >>> from nouncut.paper.scores import clustering_scores
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> data = make_clip_like(100, 4, random_state=0)
    >>> labels = TAC(4, random_state=0).fit_predict(data.features, noun_features=data.noun_features)
    >>> clustering_scores(data.labels, labels).acc > 0.9
    True
    """

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
        """Cluster images.

        Parameters
        ----------
        X : array-like of shape (n_images, d)
            Image features, of any length.
        y : ignored
            Not used, present for scikit-learn's API.
        noun_features : array-like of shape (n_nouns, e) or sequence of such
            Features of the positive nouns, one array or one per prompt; prompts are averaged.
        semantic_features : array-like of shape (n_images, e), optional
            Image features to compare with the nouns, where that is another space than X's own.

        Returns
        -------
        TAC
            The fitted estimator.
        """
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
    """Return the mean of the nouns that every image points at.

    Parameters
    ----------
    semantic : ndarray of shape (n_images, e)
        Unit image features in the space of the nouns.
    nouns : ndarray of shape (n_nouns, e)
        Unit noun features.
    tau : float, default=0.005
        Temperature.

    Returns
    -------
    ndarray of shape (n_images, e)
        ``softmax(x.n / tau) n``, scaled to length one.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.paper.baselines.tac import text_counterparts
    >>> text_counterparts(np.array([[0.6, 0.8]]), np.eye(2)).round(3)
    array([[0., 1.]])
    """
    weights = noun_probabilities(semantic, [nouns], tau)[0]
    return np.asarray(unit_rows(weights @ nouns))
