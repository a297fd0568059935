"""The method as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nouncut.compute.checks import check_choice, check_nouns, check_positive
from nouncut.compute.progress import Progress
from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import blas_threads, count_threads
from nouncut.method.copies import find_originals, match_rows
from nouncut.method.count import MAX_CLUSTERS, ClusterCount, count_clusters
from nouncut.method.ensemble import Ensemble, ensemble_graphs
from nouncut.method.extension import cluster_centers, nearest_center
from nouncut.method.footprint import fit_footprint, room_for_probabilities
from nouncut.method.graphs import (
    add_copies,
    choose_neighbors,
    even_mean,
    isolated_images,
    neighbor_graph,
    normalize_graph,
    spread_graph,
    stray_images,
    symmetrize_graph,
)
from nouncut.method.inputs import (
    check_graph,
    check_noun_features,
    check_numbers,
    check_semantic_features,
    check_size,
    unit_features,
    warn_of_strays,
)
from nouncut.method.kernel import looks_only
from nouncut.method.labels import assign_labels, fill_clusters, order_by_size
from nouncut.method.membership import membership_probabilities, membership_temperature
from nouncut.method.neighbors import Neighbors
from nouncut.method.placement import Placement, place_images, place_rows
from nouncut.method.search import search_neighbors
from nouncut.method.temperature import choose_tau

# The size of the test sets (CIFAR-10's and the like) that the published lambda was chosen on.
_LAMBDA_REFERENCE_SIZE = 10_000
# Centred features of few images repel each other: their mean cosine is -1 / (n - 1).
_FEW_IMAGES = 50
_CHOICES = {
    "affinity": ("ntk", "precomputed"),
    "lam_scale": ("absolute", "per_image"),
    "neighbors": ("union", "mutual"),
    "ensemble": ("weighted", "diffusion", "average", "prompt_mean"),
    "solver": ("auto", "exact", "spectral"),
    "assign_labels": ("discretize", "cluster_qr", "kmeans"),
}


class NTKSpectralClustering(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Spectral clustering of images on an affinity anchored by nouns.

    Two images are close when they look alike and point at the same nouns: the affinity is the
    neural tangent kernel ``(z_i . z_j) (s_i . s_j) / tau^2`` of image features z and softmax
    noun probabilities s. The graphs of several prompts are weighted by Regularized Affinity
    Diffusion [1]_. Identical images are one node of the graph.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" finds it (see `nouncut.method.count.count_clusters`).
    affinity : {"ntk", "precomputed"}, default="ntk"
        With "precomputed", X is a symmetric graph with non-negative weights, dense or sparse; its
        diagonal is ignored.
    tau : float or "auto", default=0.04
        Temperature of the softmax over nouns. The published 0.04 suits CLIP; "auto" chooses one
        for any encoder, without labels (see `nouncut.method.temperature.choose_tau`).
    n_neighbors : int or "auto", default="auto"
        Neighbours q that every image keeps in a graph. "auto" is twice the root of the number of
        images per cluster, between 2 and 30; the paper takes 30.
    mu : float, default=0.1
        Pull of the diffusion towards the identity.
    lam : float, default=10.0
        Regularisation of the prompt weights; the larger, the more even they are.
    lam_scale : {"absolute", "per_image"}, default="absolute"
        The losses that `lam` is weighed against grow with the number of images. "per_image" lets
        it grow as well: it is `lam` at 10,000 images, the size of the test sets it was published
        for.
    neighbors : {"union", "mutual"}, default="union"
        Keep an edge that either image chose, or only one that both chose. "mutual" is the
        paper's Eq. 8 to the letter and can leave many images without any neighbour.
    ensemble : {"weighted", "diffusion", "average", "prompt_mean"}, default="weighted"
        How prompts are combined. "weighted" cuts the mean of their graphs, weighted by the
        diffusion and normalised again. The paper's variants: "diffusion" cuts the diffused
        affinity (RAD), "average" the mean of the graphs (naive), "prompt_mean" the graph of the
        mean of the noun features (PE).
    solver : {"auto", "exact", "spectral"}, default="auto"
        How to diffuse. "exact" iterates dense n x n matrices as published. "spectral" works on
        the eigenvectors of a sparse matrix, in a fraction of the time. "auto" is exact up to 500
        images.
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
        Threads, as in scikit-learn: None for one, -1 for all cores. Labels do not depend on it.
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
    cluster_count_ : ClusterCount or None
        The number that "auto" found, the runners-up and a confidence; None where it was given.
    n_neighbors_ : int
        Neighbours that every image kept; the most of any image with a ready-made graph.
    originals_ : ndarray of shape (n_images,)
        The first image with the same features; the image itself where it is no copy.
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
    membership_temperature_ : float
        Temperature of the probabilities that `predict_proba` returns.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Eigenvalues of the normalised graph that belong to the embedding.
    spectrum_ : ndarray of shape (n_values,)
        The graph's leading eigenvalues, some more than `n_clusters`; those are less accurate.
    graph_ : csr_array of shape (n_images, n_images)
        The ensembled, normalised graph. A copy has one edge, of weight 1, to its original.
    neighbor_recall_ : float
        The share of the true neighbours that the search found, measured on 64 images; 1 where
        all images were compared.
    tau_ : float or None
        The temperature used; None without nouns.
    n_iter_ : int
        Outer steps of the diffusion; 1 where there was nothing to diffuse.
    isolated_ : ndarray of shape (n_isolated,)
        Images without any neighbour. They were placed by looks alone.
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
    >>> from nouncut.paper.scores import clustering_scores
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> data = make_clip_like(n_images=300, n_clusters=5, random_state=0)
    >>> model = NTKSpectralClustering(n_clusters="auto", random_state=0)
    >>> labels = model.fit_predict(data.features, noun_features=data.noun_features)
    >>> model.n_clusters_, round(clustering_scores(data.labels, labels).acc, 2)
    (5, 1.0)
    >>> model.predict(data.features[:3]) == labels[:3]
    array([ True,  True,  True])
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        affinity: Literal["ntk", "precomputed"] = "ntk",
        tau: float | Literal["auto"] = 0.04,
        n_neighbors: int | Literal["auto"] = "auto",
        mu: float = 0.1,
        lam: float = 10.0,
        lam_scale: Literal["absolute", "per_image"] = "absolute",
        neighbors: Literal["union", "mutual"] = "union",
        ensemble: Literal["weighted", "diffusion", "average", "prompt_mean"] = "weighted",
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
        self.affinity = affinity
        self.tau = tau
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.lam = lam
        self.lam_scale = lam_scale
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
            Image features, of any length; sparse ones are made dense. A graph of shape (n_images,
            n_images) with ``affinity="precomputed"``.
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
            threads. See `nouncut.compute.progress.ProgressLine`.

        Returns
        -------
        NTKSpectralClustering
            The fitted estimator.
        """
        self._check_parameters()
        self._has_semantic_features = semantic_features is not None
        self._rng = check_random_state(self.random_state)
        self.cluster_count_: ClusterCount | None = None
        # One BLAS thread: the last digits of its products depend on how many there are.
        with blas_threads(1):
            if self.affinity == "precomputed":
                if noun_features is not None or semantic_features is not None:
                    raise ValueError('nouns cannot be used with affinity="precomputed".')
                self._settle_nouns(None, nouns, None)
                return self._fit_graph(X, progress)
            features = self._unit_features(X, reset=True)
            semantic = self._semantic(features, semantic_features)
            self._settle_nouns(noun_features, nouns, semantic)
            self._fit_rows = (features,) if semantic is features else (features, semantic)
            self.originals_ = find_originals(*self._fit_rows)
            distinct = np.unique(self.originals_)
            n_clusters = check_size(len(features), len(distinct), self.n_clusters, self.n_neighbors)
            if len(distinct) < len(features):
                features = features[distinct]
                semantic = features if len(self._fit_rows) == 1 else semantic[distinct]
            self._fit_distinct(features, semantic, n_clusters, progress)
            self._expand(distinct)
        return self

    def _fit_distinct(
        self,
        features: NDArray[np.float32],
        semantic: NDArray[np.float32],
        n_clusters: int | None,
        progress: Progress | None,
    ) -> None:
        """Compare distinct images, cut the graphs and label the images."""
        graphs, k = self._neighbor_graphs(features, semantic, n_clusters, progress)
        n_images, shifted = len(features), _has_too_few_edges(graphs, k)
        if shifted:
            compared = looks_only(features)
            graphs, k = self._neighbor_graphs(compared, semantic, n_clusters, progress)
        kept, degrees, found = self._cut(graphs, k, progress)
        self._fit_images = kept
        self._placement = Placement(
            features[kept] if len(kept) < n_images else features,
            semantic[kept] if len(kept) < n_images else semantic,
            self._prompts(),
            self.tau_ or 1.0,
            min(self.n_neighbors_, max(2, choose_neighbors(n_images, k) // 2)),
            shifted,
            degrees,
            found.prompt_weights,
            found.mean_degrees,
            found.eigenpairs.vectors,
        )

        def place(strays: NDArray[np.intp]) -> NDArray[Any]:
            n_threads = count_threads(self.n_jobs)
            return place_images(self._placement, features[strays], semantic[strays], n_threads)

        self._label(kept, n_images, found, place, progress)

    def _fit_graph(self, X: ArrayLike, progress: Progress | None) -> Self:
        """Cut a graph that is there already."""
        checked = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        graph = check_graph(checked)
        n_images = graph.shape[0]
        self.originals_ = np.arange(n_images)
        k = check_size(n_images, n_images, self.n_clusters, "auto")
        self.neighbor_recall_ = 1.0
        self.n_neighbors_ = int(np.diff(graph.indptr).max(initial=0))
        k = self._count([graph]) if k is None else k
        kept, degrees, found = self._cut([graph], k, progress)
        self._fit_images = kept
        nothing = np.empty((len(kept), 0), np.float32)
        weights, vectors = found.prompt_weights, found.eigenpairs.vectors
        self._placement = Placement(
            nothing, nothing, [], 1.0, 1, False, degrees, weights, found.mean_degrees, vectors
        )

        def place(strays: NDArray[np.intp]) -> NDArray[Any]:
            return place_rows(self._placement, [csr_array(graph[strays][:, kept])])

        self._label(kept, n_images, found, place, progress)
        self._expand(self.originals_)
        return self

    def predict(self, X: ArrayLike, semantic_features: ArrayLike | None = None) -> NDArray[np.intp]:
        """Put new images into the clusters.

        An image of the fit keeps its label. A new one is placed among the images that are nearest
        to it under the kernel, and joins the nearest cluster. Nothing is fitted again.

        Parameters
        ----------
        X : array-like of shape (n_images, n_features)
            Image features; with ``affinity="precomputed"`` the affinities between these images
            and those of the fit, of shape (n_images, n_fitted_images).
        semantic_features : array-like of shape (n_images, d), optional
            Image features to compare with the nouns; needed if `fit` had them.

        Returns
        -------
        ndarray of shape (n_images,)
            Labels.
        """
        return self.place(X, semantic_features)[1]

    def predict_proba(
        self, X: ArrayLike, semantic_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return how surely images belong to every cluster.

        Parameters
        ----------
        X, semantic_features : array-like
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_images, n_clusters_)
            Probabilities; see `nouncut.method.membership.cluster_membership`.
        """
        embedding = self.transform(X, semantic_features)
        return membership_probabilities(
            embedding, self.cluster_centers_, self.membership_temperature_
        )

    def transform(
        self, X: ArrayLike, semantic_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Place images into the embedding.

        Parameters
        ----------
        X, semantic_features : array-like
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_images, n_clusters)
            Unit rows, to be compared with `cluster_centers_`; zero for images whose features are
            zero.
        """
        return self.place(X, semantic_features)[0]

    def place(
        self, X: ArrayLike, semantic_features: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return what `transform` and `predict` return, in one pass.

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
        embedding, known = self._place(X, semantic_features)
        labels = nearest_center(embedding, self.cluster_centers_)
        return embedding, np.where(known >= 0, self.labels_[known], labels)

    def fit_transform(self, X: ArrayLike, y: object = None, **fit_params: Any) -> NDArray[Any]:
        """Cluster images and return their embedding.

        Parameters
        ----------
        X, y, **fit_params
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_images, n_clusters)
            `embedding_`.
        """
        return self.fit(X, y, **fit_params).embedding_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity == "precomputed"
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        whole = ["max_iter", "max_inner_iter"]
        whole += [name for name in ("n_clusters", "n_neighbors") if getattr(self, name) != "auto"]
        check_positive({name: getattr(self, name) for name in whole}, Integral)
        real = ["mu", "lam", "tol"]
        real += [] if self.tau == "auto" else ["tau"]
        real += [] if self.max_memory is None else ["max_memory"]
        check_positive({name: getattr(self, name) for name in real}, Real)

    def _unit_features(self, X: ArrayLike, *, reset: bool) -> NDArray[np.float32]:
        check_numbers(X, "X")
        checked = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_min_samples=2 if reset else 1,
            reset=reset,
        )
        return unit_features(checked, "X")

    def _semantic(
        self,
        features: NDArray[np.float32],
        semantic_features: ArrayLike | None,
        n_columns: int | None = None,
    ) -> NDArray[np.float32]:
        if semantic_features is None:
            return features
        return check_semantic_features(semantic_features, len(features), n_columns)

    def _settle_nouns(
        self,
        noun_features: ArrayLike | Sequence[ArrayLike] | None,
        nouns: Sequence[str] | None,
        semantic: NDArray[np.float32] | None,
    ) -> None:
        """Check the nouns and settle the temperature."""
        self._noun_features: list[NDArray[np.float32]] = []
        self.tau_: float | None = None
        self.nouns_: list[str] | None = None
        if noun_features is None or semantic is None:
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
        n_clusters: int | None,
        progress: Progress | None,
    ) -> tuple[list[csr_array], int]:
        """Return symmetric graphs of nearest images, and the number of clusters.

        Where that is to be found, it is counted in graphs with a number of neighbours that suits
        any number of clusters; the graphs that are cut are made of the same neighbours.
        """
        n_images = len(features)
        asked = None if self.n_neighbors == "auto" else self.n_neighbors
        most = min(asked or choose_neighbors(n_images, n_clusters or 1), n_images - 1)
        found = search_neighbors(
            features,
            semantic,
            self._prompts(),
            self.tau_ or 1.0,
            most,
            max_bytes=self._room_for_probabilities(features, semantic, most),
            n_threads=count_threads(self.n_jobs),
            progress=progress,
        )
        self.neighbor_recall_ = found.recall
        if n_clusters is None:
            q = asked or choose_neighbors(n_images)
            n_clusters = self._count(self._symmetric_graphs(found.neighbors, q))
        self.n_neighbors_ = min(asked or choose_neighbors(n_images, n_clusters), most)
        return self._symmetric_graphs(found.neighbors, self.n_neighbors_), n_clusters

    def _symmetric_graphs(self, found: list[Neighbors], q: int) -> list[csr_array]:
        graphs = (neighbor_graph(near, len(near.indices), q) for near in found)
        return [symmetrize_graph(graph, self.neighbors) for graph in graphs]

    def _count(self, graphs: list[csr_array]) -> int:
        mean = even_mean([normalize_graph(graph)[0] for graph in graphs])
        self.cluster_count_ = count_clusters(
            normalize_graph(mean)[0],
            random_state=self._rng,
            n_threads=count_threads(self.n_jobs),
        )
        return self.cluster_count_.n_clusters

    def _room_for_probabilities(
        self, features: NDArray[np.float32], semantic: NDArray[np.float32], n_neighbors: int
    ) -> float | None:
        """Return the bytes of `max_memory` that are left for noun probabilities."""
        if self.max_memory is None:
            return None
        prompts = self._prompts()
        return room_for_probabilities(
            fit_footprint(
                len(features),
                features.shape[1] + (semantic.shape[1] if semantic is not features else 0),
                MAX_CLUSTERS if self.n_clusters == "auto" else self.n_clusters,
                n_nouns=len(prompts[0]) if prompts else 0,
                n_prompts=len(prompts),
                n_neighbors=n_neighbors,
            ),
            self.max_memory,
        )

    def _cut(
        self, graphs: list[csr_array], n_clusters: int, progress: Progress | None
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], Ensemble]:
        """Ensemble and cut the graphs of the images that can take part.

        Returns these images, their degrees in every graph, and what was found.
        """
        every_edge, n_images = even_mean(graphs), graphs[0].shape[0]
        if self.ensemble == "average":
            graphs = [every_edge]
        self.isolated_ = isolated_images(every_edge)
        kept = np.delete(np.arange(n_images), stray_images(every_edge, n_clusters))
        if len(kept) < n_clusters:
            kept = np.arange(n_images)
        warn_of_strays(n_images - len(kept), len(self.isolated_), n_images, n_clusters)
        degrees = []
        # One graph replaces the other: those of very many images fill the memory.
        for number, graph in enumerate(graphs):
            part = graph if len(kept) == n_images else graph[kept][:, kept]
            graphs[number], own = normalize_graph(part)
            degrees.append(own)
        del every_edge
        return kept, np.stack(degrees), self._diffuse(graphs, n_clusters, progress)

    def _diffuse(
        self, graphs: list[csr_array], n_clusters: int, progress: Progress | None
    ) -> Ensemble:
        lam = self.lam
        if self.lam_scale == "per_image":
            lam = self.lam * graphs[0].shape[0] / _LAMBDA_REFERENCE_SIZE
        return ensemble_graphs(
            graphs,
            n_clusters,
            solver=self.solver,
            cut="mean" if self.ensemble == "weighted" else "diffused",
            mu=self.mu,
            lam=lam,
            max_iter=self.max_iter,
            max_inner_iter=self.max_inner_iter,
            tol=self.tol,
            random_state=self._rng,
            n_threads=count_threads(self.n_jobs),
            progress=progress,
        )

    def _label(
        self,
        kept: NDArray[np.intp],
        n_images: int,
        found: Ensemble,
        place: Callable[[NDArray[np.intp]], NDArray[Any]],
        progress: Progress | None,
    ) -> None:
        """Turn eigenvectors into labels, and place the images that were not cut."""
        directions = unit_rows(found.eigenpairs.vectors)
        labels = assign_labels(
            found.eigenpairs.vectors, self.assign_labels, self._rng, count_threads(self.n_jobs)
        )
        labels = fill_clusters(directions, labels, directions.shape[1])
        self.cluster_centers_ = cluster_centers(directions, labels)
        if progress:
            progress("assigning labels", 1, 1)
        strays = np.delete(np.arange(n_images), kept)
        self.embedding_ = np.empty((n_images, directions.shape[1]), dtype=directions.dtype)
        self.embedding_[kept] = directions
        self.labels_ = np.empty(n_images, dtype=np.intp)
        self.labels_[kept] = labels
        if len(strays):
            self.embedding_[strays] = place(strays)
            self.labels_[strays] = nearest_center(self.embedding_[strays], self.cluster_centers_)
        self.n_clusters_ = len(self.cluster_centers_)
        self.graph_ = spread_graph(found.graph, kept, n_images)
        self.eigenvalues_, self.spectrum_ = found.eigenpairs.values, found.spectrum
        self.prompt_weights_ = found.prompt_weights
        if len(found.prompt_weights) < len(self._noun_features):
            self.prompt_weights_ = np.full(len(self._noun_features), 1 / len(self._noun_features))
        self.objective_, self.n_iter_ = found.objective, max(1, len(found.objective))
        self.weight_steps_ = found.weight_steps
        self.solver_ = found.solver

    def _expand(self, distinct: NDArray[np.intp]) -> None:
        """Give copies what their originals have; the largest cluster comes first."""
        n_images = len(self.originals_)
        self._fit_images = distinct[self._fit_images]
        if len(distinct) < n_images:
            own = np.searchsorted(distinct, self.originals_)
            self.labels_, self.embedding_ = self.labels_[own], self.embedding_[own]
            self.isolated_ = np.flatnonzero(np.isin(own, self.isolated_))
            self.graph_ = add_copies(spread_graph(self.graph_, distinct, n_images), self.originals_)
        ordered = order_by_size(self.labels_)
        centers = np.empty_like(self.cluster_centers_)
        centers[ordered] = self.cluster_centers_[self.labels_]
        self.cluster_centers_, self.labels_ = centers, ordered
        self.membership_temperature_ = membership_temperature(
            self.embedding_, self.cluster_centers_
        )

    def _place(
        self, X: ArrayLike, semantic_features: ArrayLike | None
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return where images lie in the embedding, and which images of the fit they are."""
        check_is_fitted(self)
        if (semantic_features is not None) != self._has_semantic_features:
            raise ValueError(
                "semantic_features must be given to predict exactly if they were given to fit."
            )
        with blas_threads(1):
            if self.affinity == "precomputed":
                rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
                edges = csr_array(rows)[:, self._fit_images]
                return place_rows(self._placement, [edges]), np.full(edges.shape[0], -1)
            features = self._unit_features(X, reset=False)
            n_columns = self._fit_rows[-1].shape[1]
            semantic = self._semantic(features, semantic_features, n_columns)
            queries = (features, semantic)[: len(self._fit_rows)]
            known = match_rows(self._fit_rows, queries)
            embedding = self.embedding_[known].astype(np.float64)
            new = np.flatnonzero(known < 0)
            if len(new):
                embedding[new] = place_images(
                    self._placement, features[new], semantic[new], count_threads(self.n_jobs)
                )
            return embedding, known


def _has_too_few_edges(graphs: list[csr_array], n_clusters: int) -> bool:
    """Tell whether few images have strays, or many too few edges for their clusters."""
    n_images = graphs[0].shape[0]
    if n_images <= _FEW_IMAGES:
        return len(stray_images(even_mean(graphs), n_clusters)) > 0
    connected = np.any([np.diff(graph.indptr) > 0 for graph in graphs], axis=0)
    return int(np.count_nonzero(connected)) < n_clusters
