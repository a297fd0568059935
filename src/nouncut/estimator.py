"""The method as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nouncut.affinity import (
    choose_tau,
    even_mean,
    isolated_images,
    mean_graph,
    neighbor_graph,
    normalize_graph,
    normalize_rows,
    query_neighbors,
    search_neighbors,
    spread_graph,
    stray_images,
    symmetrize_graph,
    unit_rows,
)
from nouncut.compute import blas_threads, count_threads
from nouncut.diffusion import Ensemble, ensemble_graphs
from nouncut.footprint import fit_footprint, room_for_probabilities
from nouncut.inputs import (
    check_choice,
    check_noun_features,
    check_nouns,
    check_positive,
    check_semantic_features,
    check_size,
    check_strays,
    unit_features,
)
from nouncut.progress import Progress
from nouncut.spectral import (
    assign_labels,
    cluster_centers,
    extend_embedding,
    nearest_center,
    order_by_size,
)

# The size of the test sets (CIFAR-10's and the like) that the published lambda was chosen on.
_LAMBDA_REFERENCE_SIZE = 10_000
_CHOICES = {
    "lambda_scale": ("absolute", "per_image"),
    "neighbors": ("union", "mutual"),
    "ensemble": ("diffusion", "average", "prompt_mean"),
    "solver": ("auto", "exact", "spectral"),
    "assign_labels": ("discretize", "cluster_qr", "kmeans"),
}


class NTKSpectralClustering(ClusterMixin, BaseEstimator):
    """Spectral clustering of images on an affinity anchored by nouns.

    Two images are close when they look alike and point at the same nouns: the affinity is the
    neural tangent kernel ``(z_i . z_j) (s_i . s_j) / tau^2`` of image features z and softmax
    noun probabilities s. The graphs of several prompts are ensembled by Regularized Affinity
    Diffusion [1]_.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    tau : float or "auto", default=0.04
        Temperature of the softmax over nouns. The published 0.04 suits CLIP; "auto" chooses one
        for any encoder, without labels (see `nouncut.affinity.choose_tau`).
    n_neighbors : int, default=30
        Neighbours q that every image keeps in a graph.
    mu : float, default=0.1
        Pull of the diffusion towards the identity.
    lambda_ : float, default=10.0
        Regularisation of the prompt weights; the larger, the more even they are.
    lambda_scale : {"absolute", "per_image"}, default="absolute"
        The losses that `lambda_` is weighed against grow with the number of images.
        "per_image" lets it grow as well: it is `lambda_` at 10,000 images, the size of the test
        sets it was published for.
    neighbors : {"union", "mutual"}, default="union"
        Keep an edge that either image chose, or only one that both chose. "mutual" is the
        paper's Eq. 8 to the letter and can leave many images without any neighbour.
    ensemble : {"diffusion", "average", "prompt_mean"}, default="diffusion"
        How prompts are combined: by diffusion, by the mean of their graphs, or by the mean of
        their noun features (the paper's RAD, naive and PE). A single array of noun features is
        cut as it is.
    solver : {"auto", "exact", "spectral"}, default="auto"
        How to diffuse. "exact" iterates dense n x n matrices as published. "spectral" works on
        the eigenvectors of a sparse matrix and finds the same clusters in a fraction of the
        time. "auto" is exact up to 500 images.
    assign_labels : {"discretize", "cluster_qr", "kmeans"}, default="discretize"
        How eigenvectors become labels.
    max_iter : int, default=5
        Most outer steps of the diffusion.
    max_inner_iter : int, default=8
        Most affinity steps within an outer step of the exact solver.
    tol : float, default=1e-4
        Convergence tolerance of the diffusion.
    random_state : int, RandomState instance or None, default=None
        Seed of starting vectors, random probes and k-means.
    n_jobs : int or None, default=None
        Threads; None for all cores. Labels do not depend on it.
    max_memory : float or None, default=None
        Gigabytes (10^9 bytes) that `fit` may take. Where that is less than it would take, noun
        probabilities are made in smaller blocks, which takes longer; where that cannot be
        enough, `fit` raises MemoryError before it begins. See `nouncut.fit_footprint`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_images,)
        Cluster of every image; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters found.
    prompt_weights_ : ndarray of shape (n_prompts,)
        The weight of every prompt.
    objective_ : ndarray of shape (n_iter_,)
        The diffusion's objective (Eq. 9) after every outer step; empty where there was nothing
        to diffuse.
    weight_steps_ : ndarray of shape (n_iter_, n_prompts)
        The weights after every outer step; empty where there was nothing to diffuse.
    embedding_ : ndarray of shape (n_images, n_clusters)
        Direction of every image in the space of the leading eigenvectors.
    cluster_centers_ : ndarray of shape (n_clusters_, n_clusters)
        Mean direction of every cluster there.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Eigenvalues of the normalised graph that belong to the embedding.
    spectrum_ : ndarray of shape (n_values,)
        The graph's leading eigenvalues, some more than `n_clusters`; those are less accurate.
    graph_ : csr_array of shape (n_images, n_images)
        The ensembled, normalised graph.
    neighbor_recall_ : float
        The share of the true neighbours that the search found, measured on 64 images; 1 where
        all images were compared.
    tau_ : float or None
        The temperature used; None without nouns.
    n_iter_ : int
        Outer steps of the diffusion; 1 where there was nothing to diffuse.
    isolated_ : ndarray of shape (n_isolated,)
        Images without any neighbour. They were assigned to clusters by their kernel values.
    solver_ : {"exact", "spectral"} or None
        The solver used; None where there was nothing to diffuse.
    nouns_ : list of str or None
        The nouns given to `fit`.
    n_features_in_ : int
        Number of image features.

    References
    ----------
    .. [1] "Delving into Spectral Clustering with Vision-Language Representations", ICLR 2026.

    Examples
    --------
    >>> from nouncut import NTKSpectralClustering
    >>> from nouncut.evaluation import clustering_scores, make_clip_like
    >>> data = make_clip_like(n_images=300, n_clusters=5, random_state=0)
    >>> model = NTKSpectralClustering(n_clusters=5, random_state=0)
    >>> model.fit(data.features, noun_features=data.noun_features)
    NTKSpectralClustering(n_clusters=5, random_state=0)
    >>> round(clustering_scores(data.labels, model.labels_).acc, 2)
    1.0
    >>> model.predict(data.features[:3]) == model.labels_[:3]
    array([ True,  True,  True])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        tau: float | Literal["auto"] = 0.04,
        n_neighbors: int = 30,
        mu: float = 0.1,
        lambda_: float = 10.0,
        lambda_scale: Literal["absolute", "per_image"] = "absolute",
        neighbors: Literal["union", "mutual"] = "union",
        ensemble: Literal["diffusion", "average", "prompt_mean"] = "diffusion",
        solver: Literal["auto", "exact", "spectral"] = "auto",
        assign_labels: Literal["discretize", "cluster_qr", "kmeans"] = "discretize",
        max_iter: int = 5,
        max_inner_iter: int = 8,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        max_memory: float | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.tau = tau
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.lambda_ = lambda_
        self.lambda_scale = lambda_scale
        self.neighbors = neighbors
        self.ensemble = ensemble
        self.solver = solver
        self.assign_labels = assign_labels
        self.max_iter = max_iter
        self.max_inner_iter = max_inner_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        noun_features: ArrayLike | Sequence[ArrayLike] | None = None,
        semantic_features: ArrayLike | None = None,
        nouns: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Cluster images.

        Parameters
        ----------
        X : array-like of shape (n_images, n_features)
            Image features, of any length; sparse ones are made dense.
        y : ignored
            Not used, present for scikit-learn's API.
        noun_features : array-like of shape (n_nouns, d) or sequence of such, optional
            Noun features, one array or one per prompt. Without them images are compared by
            appearance alone.
        semantic_features : array-like of shape (n_images, d), optional
            Image features to compare with the nouns, where that is another space than X's own.
        nouns : sequence of str, optional
            The words behind the rows of `noun_features`.
        progress : callable, optional
            Called with the stage, how much of it is done, and how much there is; from several
            threads. See `nouncut.progress.ProgressLine`.

        Returns
        -------
        NTKSpectralClustering
            The fitted estimator.
        """
        self._check_parameters()
        X = validate_data(
            self, X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2
        )
        features = unit_features(X, "X")
        self._has_semantic_features = semantic_features is not None
        semantic = (
            features
            if semantic_features is None
            else check_semantic_features(semantic_features, len(features))
        )
        n_clusters = check_size(features, semantic, self.n_clusters, self.n_neighbors)
        self._settle_nouns(noun_features, nouns, semantic)
        with blas_threads(count_threads(self.n_jobs)):
            graphs = self._neighbor_graphs(features, semantic, progress)
            # One replaces the other: those of very many images fill the memory.
            for number, graph in enumerate(graphs):
                graphs[number] = symmetrize_graph(graph, self.neighbors)
            return self._cut(graphs, features, semantic, n_clusters, progress)

    def predict(self, X: ArrayLike, semantic_features: ArrayLike | None = None) -> NDArray[np.intp]:
        """Put new images into the clusters.

        The embedding is continued to the new images through their kernel values with the fitted
        ones (Nystroem's extension), and the nearest cluster taken. Nothing is fitted again.

        Parameters
        ----------
        X : array-like of shape (n_images, n_features)
            Image features.
        semantic_features : array-like of shape (n_images, d), optional
            Image features to compare with the nouns; needed if `fit` had them.

        Returns
        -------
        ndarray of shape (n_images,)
            Labels.
        """
        return nearest_center(self.embed(X, semantic_features), self.cluster_centers_)

    def embed(
        self, X: ArrayLike, semantic_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Place new images into the embedding.

        Parameters
        ----------
        X, semantic_features : array-like
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_images, n_clusters)
            Unit rows, to be compared with `cluster_centers_`; zero for images without an edge.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        features = unit_features(X, "X")
        if (semantic_features is not None) != self._has_semantic_features:
            raise ValueError(
                "semantic_features must be given to predict exactly if they were given to fit."
            )
        semantic = (
            features
            if semantic_features is None
            else check_semantic_features(
                semantic_features, len(features), self._fit_semantic.shape[1]
            )
        )
        return self._extend(features, semantic)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        # scikit-learn would take the parameter `lambda_` for a fitted attribute.
        return hasattr(self, "labels_")

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        whole = ("n_clusters", "n_neighbors", "max_iter", "max_inner_iter")
        check_positive({name: getattr(self, name) for name in whole}, Integral)
        real = ["mu", "lambda_", "tol"]
        real += [] if self.tau == "auto" else ["tau"]
        real += [] if self.max_memory is None else ["max_memory"]
        check_positive({name: getattr(self, name) for name in real}, Real)

    def _settle_nouns(
        self,
        noun_features: ArrayLike | Sequence[ArrayLike] | None,
        nouns: Sequence[str] | None,
        semantic: NDArray[np.float32],
    ) -> None:
        """Check the nouns and settle the temperature."""
        self._noun_features: list[NDArray[np.float32]] = []
        self.tau_: float | None = None
        self.nouns_: list[str] | None = None
        if noun_features is None:
            if nouns is not None:
                raise ValueError("nouns were given without noun_features.")
            return
        prompts = check_noun_features(noun_features, semantic.shape[1])
        if nouns is not None:
            self.nouns_ = check_nouns(nouns, len(prompts[0]))
        self._noun_features = prompts
        self.tau_ = choose_tau(semantic, prompts) if self.tau == "auto" else float(self.tau)

    def _prompts(self) -> list[NDArray[np.float32]]:
        if self.ensemble == "prompt_mean" and self._noun_features:
            return [np.mean(self._noun_features, axis=0)]
        return self._noun_features

    def _neighbor_graphs(
        self,
        features: NDArray[np.float32],
        semantic: NDArray[np.float32],
        progress: Progress | None = None,
    ) -> list[csr_array]:
        """Return the directed graphs from images to their nearest images."""
        found = search_neighbors(
            features,
            semantic,
            self._prompts(),
            self.tau_ or 1.0,
            min(self.n_neighbors, len(features) - 1),
            max_bytes=self._room_for_probabilities(features, semantic),
            n_threads=count_threads(self.n_jobs),
            progress=progress,
        )
        self.neighbor_recall_ = found.recall
        return [neighbor_graph(neighbors, len(features)) for neighbors in found.neighbors]

    def _room_for_probabilities(
        self, features: NDArray[np.float32], semantic: NDArray[np.float32]
    ) -> float | None:
        """Return the bytes of `max_memory` that are left for noun probabilities."""
        if self.max_memory is None:
            return None
        prompts = self._prompts()
        return room_for_probabilities(
            fit_footprint(
                len(features),
                features.shape[1] + (semantic.shape[1] if semantic is not features else 0),
                self.n_clusters,
                n_nouns=len(prompts[0]) if prompts else 0,
                n_prompts=len(prompts),
                n_neighbors=self.n_neighbors,
            ),
            self.max_memory,
        )

    def _cut(
        self,
        graphs: list[csr_array],
        features: NDArray[np.float32],
        semantic: NDArray[np.float32],
        n_clusters: int,
        progress: Progress | None,
    ) -> Self:
        """Ensemble and cut the graphs, then place the images that could not take part."""
        every_edge = even_mean(graphs)
        if self.ensemble == "average":
            graphs = [every_edge]
        self.isolated_ = isolated_images(every_edge)
        strays = stray_images(every_edge, n_clusters)
        check_strays(len(strays), len(self.isolated_), len(features), n_clusters)
        kept = np.delete(np.arange(len(features)), strays)
        if len(strays):
            graphs = [graph[kept][:, kept] for graph in graphs]
        self._degrees = []
        for number, graph in enumerate(graphs):
            graphs[number], degrees = normalize_graph(graph)
            self._degrees.append(degrees)
        del every_edge
        rng = check_random_state(self.random_state)
        found = self._diffuse(graphs, n_clusters, rng, progress)

        self._fit_images = kept
        self._fit_features = features[kept] if len(strays) else features
        self._fit_semantic = semantic[kept] if len(strays) else semantic
        self._graph_weights, self._eigenpairs = found.prompt_weights, found.eigenpairs
        directions = unit_rows(found.eigenpairs.vectors)
        labels = assign_labels(
            found.eigenpairs.vectors, self.assign_labels, rng, count_threads(self.n_jobs)
        )
        self.cluster_centers_ = cluster_centers(directions, labels)
        if progress:
            progress("assigning labels", 1, 1)

        self.embedding_ = np.empty((len(features), n_clusters), dtype=directions.dtype)
        self.embedding_[kept] = directions
        self.labels_ = np.empty(len(features), dtype=np.intp)
        self.labels_[kept] = labels
        if len(strays):
            self.embedding_[strays] = self._extend(features[strays], semantic[strays])
            self.labels_[strays] = nearest_center(self.embedding_[strays], self.cluster_centers_)
            self._order_clusters()
        self.n_clusters_ = len(self.cluster_centers_)
        if self.n_clusters_ < n_clusters:
            warnings.warn(
                f"Only {self.n_clusters_} of {n_clusters} clusters have any image.", stacklevel=3
            )
        self.graph_ = spread_graph(found.graph, kept, len(features))
        self.eigenvalues_, self.spectrum_ = found.eigenpairs.values, found.spectrum
        self.prompt_weights_ = found.prompt_weights
        if len(graphs) < len(self._noun_features):
            self.prompt_weights_ = np.full(len(self._noun_features), 1 / len(self._noun_features))
        self.objective_, self.n_iter_ = found.objective, max(1, len(found.objective))
        self.weight_steps_ = found.weight_steps
        self.solver_ = found.solver
        return self

    def _order_clusters(self) -> None:
        """Make the largest cluster the first again after strays have joined."""
        ordered = order_by_size(self.labels_)
        centers = np.empty_like(self.cluster_centers_)
        centers[ordered] = self.cluster_centers_[self.labels_]
        self.cluster_centers_, self.labels_ = centers, ordered

    def _diffuse(
        self,
        graphs: list[csr_array],
        n_clusters: int,
        rng: np.random.RandomState,
        progress: Progress | None,
    ) -> Ensemble:
        n_images = graphs[0].shape[0]
        if self.lambda_scale == "per_image":
            lambda_ = self.lambda_ * n_images / _LAMBDA_REFERENCE_SIZE
        else:
            lambda_ = self.lambda_
        return ensemble_graphs(
            graphs,
            n_clusters,
            solver=self.solver,
            mu=self.mu,
            lambda_=lambda_,
            max_iter=self.max_iter,
            max_inner_iter=self.max_inner_iter,
            tol=self.tol,
            random_state=rng,
            n_threads=count_threads(self.n_jobs),
            progress=progress,
        )

    def _extend(
        self, features: NDArray[np.float32], semantic: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """Return where images that were not cut lie in the embedding."""
        found = query_neighbors(
            self._fit_features,
            self._fit_semantic,
            self._prompts(),
            self.tau_ or 1.0,
            min(self.n_neighbors, len(self._fit_features)),
            (features, semantic),
            n_threads=count_threads(self.n_jobs),
        )
        rows = [neighbor_graph(neighbors, len(self._fit_features)) for neighbors in found]
        if self.ensemble == "average":
            rows = [even_mean(rows)]
        parts = [normalize_rows(r, degrees) for r, degrees in zip(rows, self._degrees, strict=True)]
        return extend_embedding(mean_graph(parts, self._graph_weights), self._eigenpairs)
