"""From a collection to named groups: how many, which image where, how certain, what name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import count_threads
from nouncut.layout.map import map_images
from nouncut.method.count import ClusterCount, count_images
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.graphs import provisional_count
from nouncut.method.kernel import Kernel
from nouncut.method.membership import (
    Membership,
    cluster_membership,
    outliers,
)
from nouncut.method.temperature import choose_tau
from nouncut.runs.collection import (
    Collection,
    compare_by_words,
    original_images,
    share_features_of_copies,
)
from nouncut.runs.job import Job
from nouncut.runs.matching import (
    EarlierGroups,
    KeptNames,
    earlier_groups,
    keep_names,
    kept_numbers,
)
from nouncut.runs.naming import name_groups
from nouncut.runs.vocabulary import PositiveNouns, Vocabulary, choose_nouns
from nouncut.words.cluster_names import ClusterName

# Centring leaves only noise of photographs that are all alike. Under the embedded model, copies of
# one photograph in several sizes have mean cosines of 0.84 to 0.97, two kinds at most 0.8.
_ONE_KIND = 0.8


@dataclass(frozen=True)
class Groups:
    """A clustering with names, memberships and outliers; `count` is None if K was given."""

    model: NTKSpectralClustering
    count: ClusterCount | None
    nouns: PositiveNouns | None
    names: list[ClusterName]
    membership: Membership
    outliers: NDArray[np.intp]


def prepare_comparison(
    collection: Collection, vocabulary: Vocabulary | None, job: Job
) -> Collection:
    """Compare images by looks or by words, and copies like their originals."""
    originals = original_images(collection)
    if vocabulary is not None and job.settings.comparison == "words":
        with job.stage("comparing words"):
            collection = compare_by_words(collection, vocabulary.features)
    return share_features_of_copies(collection, originals)


def group_as_before(
    directory: Path, collection: Collection, vocabulary: Vocabulary | None, job: Job
) -> tuple[Groups, KeptNames]:
    """Cluster images and name the clusters, after the run in the directory if there is one."""
    earlier = earlier_groups(directory, collection, job)
    groups = group_images(collection, vocabulary, job, earlier)
    numbers = kept_numbers(directory, collection, groups.model.labels_, len(groups.names))
    groups = _renumbered(groups, numbers)
    names = keep_names(directory, collection, groups.model.labels_, groups.names, job)
    return replace(groups, names=names.computed), names


def _renumbered(groups: Groups, numbers: NDArray[np.intp]) -> Groups:
    """Give clusters other numbers."""
    if np.array_equal(numbers, np.arange(len(numbers))):
        return groups
    model, found, order = groups.model, groups.membership, np.argsort(numbers)
    model.labels_ = numbers[model.labels_]
    model.cluster_centers_ = model.cluster_centers_[order]
    second = np.where(found.second < 0, -1, numbers[found.second])
    membership = found._replace(label=numbers[found.label], second=second)
    names = [groups.names[cluster] for cluster in order]
    return replace(groups, names=names, membership=membership)


def group_images(
    collection: Collection,
    vocabulary: Vocabulary | None,
    job: Job,
    earlier: EarlierGroups,
) -> Groups:
    """Count clusters, unless an `earlier` run did, choose nouns, cluster and name the clusters."""
    n_clusters, count = job.settings.n_clusters, None
    # Without nouns, the fit itself counts, and searches neighbours once. Nouns depend on the
    # number of clusters, so it must be known before the graphs that they make are searched.
    if n_clusters == "auto" and (earlier.count or vocabulary is not None):
        count = earlier.count or count_groups(collection, vocabulary, job)
        n_clusters = count.n_clusters
    nouns = None if n_clusters == "auto" else choose_nouns(collection, vocabulary, n_clusters, job)
    with job.stage("clustering"):
        model = _fit(collection, nouns, n_clusters, earlier.labels, job)
        membership = cluster_membership(
            model.embedding_,
            model.cluster_centers_,
            labels=model.labels_,
            temperature=model.membership_temperature_,
        )
        alone = single_outliers(model)
    with job.timed("naming groups"):
        names = name_groups(model.labels_, model.n_clusters_, collection, vocabulary, job)
    return Groups(model, count or model.cluster_count_, nouns, names, membership, alone)


def count_groups(collection: Collection, vocabulary: Vocabulary | None, job: Job) -> ClusterCount:
    """Find how many clusters a collection has."""
    settings = job.settings
    by_words, nouns = settings.comparison == "words", None
    encoder = collection.model and collection.model.encoder
    # A model that infers meaning from looks counts better by looks alone.
    if encoder and (encoder.shares_space or by_words):
        nouns = choose_nouns(collection, vocabulary, provisional_count(len(collection)), job)
    with job.stage("counting groups"):
        alike = 0.0 if by_words else _likeness(collection)
        if alike > _ONE_KIND:
            return ClusterCount(1, ((1, alike),), alike)
        return count_images(
            collection_kernel(collection, nouns, job),
            None if settings.n_neighbors == "auto" else settings.n_neighbors,
            random_state=settings.random_state,
            n_threads=count_threads(job.n_jobs),
            progress=job.progress,
        )


def _likeness(collection: Collection) -> float:
    """Return the mean cosine of the embedded model's images before centring; 0 for others."""
    if collection.lengths is None or not collection.views[0]:
        return 0.0
    center = collection.views[0].center.astype(np.float64)
    common, own = float(center @ center), float(np.square(collection.lengths).mean())
    n = len(collection)
    # A sample's mean lies nearer to its own images than the true mean does.
    return max(0.0, (n * common / max(common + own, 1e-12) - 1) / (n - 1))


def draw_map(groups: Groups, job: Job) -> NDArray[Any]:
    """Return the positions of the images on the map, (n_images, 2)."""
    stage = "drawing the map"
    with job.timed(stage):
        return map_images(
            groups.model.embedding_,
            groups.model.graph_,
            groups.model.labels_,
            random_state=job.settings.random_state,
            n_threads=count_threads(job.n_jobs),
            progress=lambda _, done, total: job.progress(stage, done, total),
        )


def _fit(
    collection: Collection,
    nouns: PositiveNouns | None,
    n_clusters: int | Literal["auto"],
    earlier_labels: NDArray[np.intp] | None,
    job: Job,
) -> NTKSpectralClustering:
    tau = chosen_tau(collection, job)
    model = NTKSpectralClustering(
        n_clusters,
        tau="auto" if tau is None else tau,
        semantic_weight=chosen_weight(collection, job),
        n_neighbors=job.settings.n_neighbors,
        solver=job.settings.solver,
        random_state=job.settings.random_state,
        n_jobs=job.n_jobs,
    )
    if nouns is None:
        return model.fit(collection.visual, earlier_labels=earlier_labels, progress=job.progress)
    return model.fit(
        collection.visual,
        semantic_features=None if _shares_space(collection) else collection.semantic,
        noun_features=nouns.features,
        nouns=nouns.words,
        earlier_labels=earlier_labels,
        progress=job.progress,
    )


def _shares_space(collection: Collection) -> bool:
    """Tell whether the features that compare images are those that compare them with nouns."""
    is_compared_as_is = not collection.looks and collection.word_view is None
    model = collection.model
    return is_compared_as_is and model is not None and model.encoder.shares_space


def chosen_weight(collection: Collection, job: Job) -> float | Literal["auto"]:
    """Return the weight of words beside looks."""
    # Where words compare the images, there are no looks to judge the words by.
    return job.settings.semantic_weight if collection.word_view is None else 1.0


def chosen_tau(collection: Collection, job: Job) -> float | None:
    """Return the temperature; None to choose one without labels."""
    asked = job.settings.tau
    if asked is None and collection.model is not None:
        return collection.model.encoder.tau
    return None if asked in (None, "auto") else float(asked)


def single_outliers(model: NTKSpectralClustering) -> NDArray[np.intp]:
    """Return the outliers among images without copies."""
    found = outliers(model.graph_, model.labels_)
    n_copies = np.bincount(model.originals_, minlength=len(model.originals_))[model.originals_]
    return np.asarray(found[n_copies[found] == 1])


def collection_kernel(collection: Collection, nouns: PositiveNouns | None, job: Job) -> Kernel:
    """Return the kernel of the images with the nouns, or of their looks alone."""
    images = unit_rows(collection.visual)
    if nouns is None or collection.semantic is None:
        return Kernel(images, images)
    semantic, tau = unit_rows(collection.semantic), chosen_tau(collection, job)
    tau = choose_tau(semantic, nouns.features) if tau is None else tau
    return Kernel(images, semantic, nouns.features, tau)
