"""Prediction for a fitted estimator: labels, probabilities and coordinates of images."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted, validate_data

from nouncut.compute.threads import blas_threads, count_threads
from nouncut.errors import ParameterError
from nouncut.method.copies import match_rows
from nouncut.method.inputs import check_image_features
from nouncut.method.labels import nearest_center
from nouncut.method.membership import membership_probabilities
from nouncut.method.placement import Placement, place_images, place_rows


class PredictionMixin:
    """The methods of `NTKSpectralClustering` that take images after the fit."""

    affinity: str
    n_jobs: int | None
    labels_: NDArray[np.intp]
    embedding_: NDArray[np.float64]
    cluster_centers_: NDArray[np.float64]
    membership_temperature_: float
    _placement: Placement
    # Unit features of all fitted images, and semantic ones if given; empty for a graph.
    _rows: tuple[NDArray[np.float32], ...]

    def predict(self, X: ArrayLike, semantic_features: ArrayLike | None = None) -> NDArray[np.intp]:
        """Assign images to the clusters of the fit.

        An image of the fit keeps its label. A new image joins the cluster that is nearest to the
        mean direction of its nearest images. Nothing is fitted again.

        Parameters
        ----------
        X : array-like of shape (n_images, n_features)
            Image features; with ``affinity="precomputed"`` the affinities between these images
            and those of the fit, of shape (n_images, n_fitted_images).
        semantic_features : array-like of shape (n_images, d), optional
            Image features in the space of the nouns; required if `fit` had them.

        Returns
        -------
        ndarray of shape (n_images,)
            Labels.
        """
        return self.place(X, semantic_features)[1]

    def predict_proba(
        self, X: ArrayLike, semantic_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the membership probabilities of images.

        Parameters
        ----------
        X, semantic_features : array-like
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_images, n_clusters_)
            Probability of every cluster; see `nouncut.method.membership.cluster_membership`.
        """
        embedding = self.transform(X, semantic_features)
        return membership_probabilities(
            embedding, self.cluster_centers_, self.membership_temperature_
        )

    def transform(
        self, X: ArrayLike, semantic_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Place images in the embedding.

        Parameters
        ----------
        X, semantic_features : array-like
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_images, n_clusters)
            Unit rows, comparable with `cluster_centers_`; zero for images with zero features.
        """
        return self.place(X, semantic_features)[0]

    def place(
        self, X: ArrayLike, semantic_features: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return the results of `transform` and `predict` in one pass.

        Parameters
        ----------
        X, semantic_features : array-like
            As for `predict`.

        Returns
        -------
        embedding : ndarray of shape (n_images, n_clusters)
            Unit rows.
        labels : ndarray of shape (n_images,)
            Labels.
        """
        check_is_fitted(self)
        if (semantic_features is not None) != (len(self._rows) == 2):
            raise ParameterError(
                "`semantic_features` must be given to `predict` if and only if `fit` had them."
            )
        with blas_threads(1):
            if self.affinity == "precomputed":
                rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
                edges = csr_array(rows)[:, self._placement.images]
                embedding = place_rows(self._placement, [edges])
                return embedding, nearest_center(embedding, self.cluster_centers_)
            queries = check_image_features(self, X, semantic_features, self._rows[-1].shape[1])
            known = match_rows(self._rows, queries)
            embedding = self.embedding_[known].astype(np.float64)
            new = np.flatnonzero(known < 0)
            if len(new):
                parts = queries[0][new], queries[-1][new]
                embedding[new] = place_images(self._placement, *parts, count_threads(self.n_jobs))
            labels = nearest_center(embedding, self.cluster_centers_)
            return embedding, np.where(known >= 0, self.labels_[known], labels)
