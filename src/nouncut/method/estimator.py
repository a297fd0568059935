"""The method as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nouncut.compute.progress import Progress
from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import blas_threads, count_threads
from nouncut.errors import ParameterError
from nouncut.method.choices import (
    Affinity,
    Assignment,
    Combination,
    LamScale,
    Solver,
    Symmetry,
)
from nouncut.method.diffusion import DiffusionOptions
from nouncut.method.fit import Fit, FitOptions, fit_graph, fit_images
from nouncut.method.inputs import (
    check_graph,
    check_image_features,
    check_noun_features,
    check_parameters,
)
from nouncut.method.kernel import Kernel
from nouncut.method.membership import membership_temperature
from nouncut.method.placement import PLACEMENT_ARRAYS, Placement
from nouncut.method.prediction import PredictionMixin
from nouncut.method.temperature import choose_tau
from nouncut.method.trust import NounTrust, weigh_nouns

# The names of the arrays that `to_arrays` may return.
MODEL_ARRAYS = (*PLACEMENT_ARRAYS, "model_centers", "model_membership_temperature")


class NTKSpectralClustering(
    PredictionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Spectral clustering of images on an affinity anchored by nouns.

    Two images are similar if they look alike and match the same nouns: the affinity is the neural
    tangent kernel ``(z_i . z_j) (s_i . s_j) / tau^2`` of image features z and softmax probabilities
    s over nouns. Regularized Affinity Diffusion weighs the graphs of several prompts [1]_.
    Identical images are one node of the graph.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" finds it (see `nouncut.method.count.count_clusters`).
    affinity : {"ntk", "precomputed"}, default="ntk"
        With "precomputed", X is a symmetric graph, dense or sparse, with non-negative weights; its
        diagonal is ignored.
    tau : float or "auto", default=0.04
        Temperature of the softmax over nouns. The published 0.04 suits CLIP; "auto" chooses one
        for any encoder (see `nouncut.method.temperature.choose_tau`).
    semantic_weight : float or "auto", default=1.0
        Share of the kernel that nouns change, from 0 (looks alone) to 1 (the paper's kernel).
        "auto" trusts nouns as far as they agree with looks (see
        `nouncut.method.trust.noun_trust`).
    n_neighbors : int or "auto", default="auto"
        Neighbours q that every image keeps in a graph. "auto" is twice the square root of the
        images per cluster, between 2 and 30; the paper uses 30.
    mu : float, default=0.1
        Weight of the identity in the diffusion (Eq. 9).
    lam : float, default=10.0
        Regularisation of the prompt weights; a larger value makes them more even.
    lam_scale : {"absolute", "per_image"}, default="absolute"
        The prompts' losses grow with the number of images. "per_image" scales `lam` in the same
        way, relative to 10,000 images, the size of the paper's test sets.
    neighbors : {"union", "mutual"}, default="union"
        Keep an edge that either image chose, or only one that both chose. "mutual" is the paper's
        Eq. 8 to the letter and can leave many images without any neighbour.
    ensemble : {"weighted", "diffusion", "average", "prompt_mean"}, default="weighted"
        How prompts are combined. "weighted" cuts the mean of their graphs, weighted by the
        diffusion and normalised again. The paper's variants: "diffusion" cuts the diffused
        affinity (RAD), "average" the plain mean of the graphs (naive), "prompt_mean" the graph of
        the mean noun features (PE).
    solver : {"auto", "exact", "spectral"}, default="auto"
        How to diffuse. "exact" iterates dense n x n matrices as published. "spectral" works on
        eigenvectors of a sparse matrix and takes a fraction of the time. "auto" is exact up to 500
        images.
    assign_labels : {"merge", "discretize", "cluster_qr", "kmeans"}, default="merge"
        How eigenvectors become labels. "merge" compares "discretize" with a finer cut whose
        pieces are joined along the graph, which suits clusters of uneven sizes, and takes the
        better one; with ``ensemble="diffusion"`` it is "discretize", the paper's choice.
    max_iter : int, default=5
        Maximum number of outer steps of the diffusion.
    max_inner_iter : int, default=8
        Maximum number of affinity steps within an outer step of the exact solver.
    tol : float, default=1e-4
        Convergence tolerance of the diffusion.
    random_state : int, RandomState instance or None, default=None
        Seed of starting vectors, random probes and k-means.
    n_jobs : int or None, default=None
        Threads, as in scikit-learn: None for one, -1 for all cores. Labels do not depend on it.
    max_memory : float or None, default=None
        Gigabytes (10^9 bytes) that `fit` may use. A low limit makes noun probabilities in smaller
        blocks, which takes longer; if that cannot be enough, `fit` raises MemoryError before it
        begins. See `nouncut.fit_footprint`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_images,)
        Cluster of every image; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters found.
    cluster_count_ : ClusterCount or None
        The number that "auto" found, other candidates and a confidence; None if it was given.
    n_neighbors_ : int
        Neighbours that every image kept; the most of any image in a precomputed graph.
    originals_ : ndarray of shape (n_images,)
        The first image with the same features; the image itself if it is no copy.
    prompt_weights_ : ndarray of shape (n_prompts,)
        Weights of the prompts.
    objective_ : ndarray of shape (n_iter_,)
        The diffusion's objective (Eq. 9) after every outer step; empty without diffusion.
    weight_steps_ : ndarray of shape (n_iter_, n_prompts)
        The weights after every outer step; empty without diffusion.
    embedding_ : ndarray of shape (n_images, n_clusters)
        Direction of every image in a space of leading eigenvectors.
    cluster_centers_ : ndarray of shape (n_clusters_, n_clusters)
        Mean direction of every cluster there.
    membership_temperature_ : float
        Temperature of the probabilities that `predict_proba` returns.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Eigenvalues of the normalised graph that belong to the embedding.
    spectrum_ : ndarray of shape (n_values,)
        Leading eigenvalues of the graph; those beyond `n_clusters` are less accurate.
    graph_ : csr_array of shape (n_images, n_images)
        The ensembled, normalised graph. A copy has one edge, of weight 1, to its original.
    neighbor_recall_ : float
        The share of the true neighbours that the search found under the worst prompt, measured on
        64 images; 1 if all images were compared.
    tau_ : float or None
        The temperature used; None without nouns.
    semantic_weight_ : float
        The weight of the nouns; 0 without nouns.
    noun_trust_ : NounTrust or None
        The agreements from which "auto" chose the weight; None if it was given.
    n_iter_ : int
        Outer steps of the diffusion; 1 without diffusion.
    isolated_ : ndarray of shape (n_isolated,)
        Images without any neighbour, placed by looks alone.
    solver_ : {"exact", "spectral"} or None
        The solver used; None without diffusion.
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

    semantic_weight_: float
    noun_trust_: NounTrust | None

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        affinity: Affinity = "ntk",
        tau: float | Literal["auto"] = 0.04,
        semantic_weight: float | Literal["auto"] = 1.0,
        n_neighbors: int | Literal["auto"] = "auto",
        mu: float = 0.1,
        lam: float = 10.0,
        lam_scale: LamScale = "absolute",
        neighbors: Symmetry = "union",
        ensemble: Combination = "weighted",
        solver: Solver = "auto",
        assign_labels: Assignment = "merge",
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
        self.semantic_weight = semantic_weight
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
        earlier_labels: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Cluster images.

        Parameters
        ----------
        X : array-like of shape (n_images, n_features), or list of such
            Image features, of any length. Several arrays, from different encoders, are compared by
            the mean of their cosines; nouns then need `semantic_features`. With
            ``affinity="precomputed"``, a graph of shape (n_images, n_images). Sparse features are
            made dense.
        y : ignored
            Not used, present for scikit-learn's API.
        noun_features : array-like of shape (n_nouns, d) or sequence of such, optional
            Noun features, one array or one per prompt. Without them images are compared by
            appearance alone.
        semantic_features : array-like of shape (n_images, d), optional
            Image features in the space of the nouns, if that is not the space of X.
        nouns : sequence of str, optional
            The words behind the rows of `noun_features`.
        earlier_labels : array-like of shape (n_images,), optional
            Labels of an earlier fit to mostly the same images, -1 for new images. They stay unless
            another cut is clearly better. Only for ``assign_labels="merge"`` and the same number of
            clusters.
        progress : callable, optional
            Called with the stage, the number of steps done and their total, from several threads.
            See `nouncut.compute.progress.ProgressLine`.

        Returns
        -------
        NTKSpectralClustering
            The fitted estimator.
        """
        check_parameters(self.get_params(deep=False))
        options = self._options(progress, earlier_labels)
        # One BLAS thread: the last digits of its products depend on the number of threads.
        with blas_threads(1):
            if self.affinity == "precomputed":
                if any(given is not None for given in (noun_features, semantic_features, nouns)):
                    raise ParameterError('Nouns cannot be used with `affinity="precomputed"`.')
                checked = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
                self._rows, self.tau_, self.nouns_ = (), None, None
                self.semantic_weight_, self.noun_trust_ = 0.0, None
                self._keep(fit_graph(check_graph(checked), self.n_clusters, options))
            else:
                self._rows = check_image_features(self, X, semantic_features)
                prompts = check_noun_features(noun_features, nouns, self._rows[-1].shape[1])
                self.nouns_ = None if nouns is None else [str(noun) for noun in nouns]
                self.tau_ = self._temperature(prompts)
                kernel = Kernel(self._rows[0], self._rows[-1], prompts, self.tau_ or 1.0)
                k, rng, n_threads = self.n_clusters, options.rng, options.n_threads
                found = weigh_nouns(kernel, self.semantic_weight, k, rng, n_threads)
                self.semantic_weight_, self.noun_trust_ = found
                used = prompts if self.semantic_weight_ else []
                kernel = kernel._replace(prompts=used, weight=self.semantic_weight_)
                self._keep(fit_images(kernel, self.n_clusters, options), len(prompts))
        return self

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

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that `from_arrays` needs, beside the features of the images.

        Returns
        -------
        dict of str to ndarray
            Arrays with names from `MODEL_ARRAYS`.
        """
        check_is_fitted(self)
        return self._placement.to_arrays() | {
            "model_centers": self.cluster_centers_,
            "model_membership_temperature": np.asarray(self.membership_temperature_),
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        X: ArrayLike,
        semantic_features: ArrayLike | None,
        embedding: NDArray[Any],
        labels: NDArray[Any],
        n_jobs: int | None = None,
    ) -> Self:
        """Return an estimator that places new images as a fitted one does.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            What `to_arrays` returned.
        X, semantic_features : array-like
            The image features that were given to `fit`; not a precomputed graph.
        embedding, labels : ndarray
            `embedding_` and `labels_` of the fitted estimator.
        n_jobs : int or None, default=None
            As for the estimator.

        Returns
        -------
        NTKSpectralClustering
            An estimator for `predict`, `predict_proba`, `transform` and `place`.

        Examples
        --------
        >>> from nouncut import NTKSpectralClustering
        >>> from nouncut.paper.synthetic import make_clip_like
        >>> X = make_clip_like(n_images=60, n_clusters=3, random_state=0).features
        >>> model = NTKSpectralClustering(3, random_state=0).fit(X[:50])
        >>> arrays, (embedding, labels) = model.to_arrays(), (model.embedding_, model.labels_)
        >>> again = NTKSpectralClustering.from_arrays(arrays, X[:50], None, embedding, labels)
        >>> bool((again.predict(X) == model.predict(X)).all())
        True
        """
        centers = np.asarray(arrays["model_centers"])
        given = [part for part in (X, semantic_features) if part is not None]
        model = cls(len(centers), n_jobs=n_jobs)
        model._rows = tuple(unit_rows(np.asarray(part, dtype=np.float32)) for part in given)
        model._placement = Placement.from_arrays(arrays, model._rows)
        model.n_features_in_ = model._rows[0].shape[1]
        model.n_clusters_, model.cluster_centers_ = len(centers), centers
        model.embedding_, model.labels_ = embedding, np.asarray(labels)
        temperature = arrays.get("model_membership_temperature")
        model.membership_temperature_ = (
            membership_temperature(embedding, centers)
            if temperature is None
            else float(temperature)
        )
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity == "precomputed"
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _options(self, progress: Progress | None, earlier: ArrayLike | None) -> FitOptions:
        return FitOptions(
            n_neighbors=None if self.n_neighbors == "auto" else self.n_neighbors,
            neighbors=self.neighbors,
            ensemble=self.ensemble,
            solver=self.solver,
            diffusion=DiffusionOptions(
                self.mu, self.lam, self.max_iter, self.max_inner_iter, self.tol
            ),
            lam_per_image=self.lam_scale == "per_image",
            assign_labels=self.assign_labels,
            max_memory=self.max_memory,
            rng=check_random_state(self.random_state),
            n_threads=count_threads(self.n_jobs),
            progress=progress,
            earlier_labels=None if earlier is None else np.asarray(earlier),
        )

    def _temperature(self, prompts: list[NDArray[np.float32]]) -> float | None:
        if not prompts:
            return None
        return choose_tau(self._rows[-1], prompts) if self.tau == "auto" else float(self.tau)

    def _keep(self, found: Fit, n_prompts: int = 0) -> None:
        """Set the fitted attributes."""
        cut, prompts, self.solver_ = found.ensemble
        self._placement, self.originals_ = found.placement, found.originals
        self.labels_, self.embedding_, self.graph_ = found.labels, found.embedding, found.graph
        self.n_clusters_, self.cluster_centers_ = len(found.centers), found.centers
        self.cluster_count_, self.isolated_ = found.cluster_count, found.isolated
        self.n_neighbors_, self.neighbor_recall_ = found.n_neighbors, found.recall
        self.eigenvalues_, self.spectrum_ = cut.eigenpairs.values, cut.spectrum
        self.prompt_weights_ = prompts.weights
        if len(prompts.weights) < n_prompts:
            self.prompt_weights_ = np.full(n_prompts, 1 / n_prompts)
        self.objective_, self.n_iter_ = prompts.objective, max(1, len(prompts.objective))
        self.weight_steps_ = prompts.steps
        self.membership_temperature_ = membership_temperature(
            found.embedding, found.centers, found.stability
        )
