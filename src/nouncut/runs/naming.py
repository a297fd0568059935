"""Names of a run's clusters, from the best evidence that its model has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import count_threads
from nouncut.models.encoder import Encoder
from nouncut.runs.collection import Collection
from nouncut.runs.job import Job
from nouncut.runs.settings import Settings
from nouncut.runs.vocabulary import Vocabulary
from nouncut.words.backoff import CLASSIFIER, NOUNS
from nouncut.words.cluster_names import ClusterName, group_name, name_clusters
from nouncut.words.concept_names import name_by_concepts
from nouncut.words.concepts import noun_senses
from nouncut.words.evidence import (
    Evidence,
    gather_evidence,
    information,
    noun_softmax,
    spread_tau,
)
from nouncut.words.wordnet import VISIBLE_LEXICONS, load_wordnet

# CLIP was trained with logits of 100 times the cosine.
_CLIP_TAU = 0.01


def name_groups(
    labels: NDArray[Any],
    n_clusters: int,
    collection: Collection,
    vocabulary: Vocabulary | None,
    job: Job,
) -> list[ClusterName]:
    """Name the clusters of a collection; by the words that the user asks for, if any."""
    if vocabulary is None or collection.semantic is None or collection.model is None:
        return [ClusterName(group_name(c), (), "", 0.0) for c in range(n_clusters)]
    if asks_for_words(job.settings):
        return name_clusters(
            labels,
            collection.semantic,
            vocabulary.words,
            vocabulary.features,
            n_jobs=job.n_jobs,
            progress=job.progress,
        )
    encoder = collection.model.encoder
    if names_by_classes(encoder, job.settings) and collection.rows is not None:
        synsets = encoder.known_synsets()
        return _name_by_classes(labels, n_clusters, collection, encoder, synsets, job)
    return _name_by_nouns(labels, n_clusters, collection.semantic, vocabulary, encoder, job)


def asks_for_words(settings: Settings) -> bool:
    """Tell whether names are to come from words that the user has chosen."""
    return settings.vocabulary is not None or settings.lexicons != VISIBLE_LEXICONS


def names_by_classes(encoder: Encoder, settings: Settings) -> bool:
    """Tell whether names come from the model's own classes."""
    return bool(encoder.known_synsets()) and not asks_for_words(settings)


def _name_by_classes(
    labels: NDArray[Any],
    n_clusters: int,
    collection: Collection,
    encoder: Encoder,
    synsets: Sequence[str],
    job: Job,
) -> list[ClusterName]:
    """Name clusters by what a classifier takes their images for."""
    read = collection.rows
    assert read is not None
    evidence = gather_evidence(
        labels,
        n_clusters,
        len(synsets),
        lambda members: encoder.synset_probabilities(read(members)),
        progress=job.progress,
    )
    table = load_wordnet()
    concepts = [table[id_] for id_ in synsets]
    return name_by_concepts(evidence, concepts, calibration=CLASSIFIER)


def _name_by_nouns(
    labels: NDArray[Any],
    n_clusters: int,
    semantic: NDArray[Any],
    vocabulary: Vocabulary,
    encoder: Encoder,
    job: Job,
) -> list[ClusterName]:
    """Name clusters by the nouns that their images are most similar to."""
    images, nouns = unit_rows(semantic), unit_rows(vocabulary.features)
    tau = spread_tau(images, nouns) if encoder.tau is None else _CLIP_TAU
    evidence = gather_evidence(
        # Images without features say nothing.
        np.where(images.any(axis=1), labels, -1),
        n_clusters,
        len(nouns),
        noun_softmax(images, nouns, tau),
        n_threads=count_threads(job.n_jobs),
        progress=job.progress,
    )
    scores = information(evidence.probabilities, evidence.sizes, 1 / len(nouns))
    senses = noun_senses(vocabulary.words, scores)
    concepts = [sense or vocabulary.words[noun] for noun, sense in senses.items()]
    part = _some_concepts(evidence, list(senses))
    return name_by_concepts(part, concepts, calibration=NOUNS)


def _some_concepts(evidence: Evidence, columns: list[int]) -> Evidence:
    return Evidence(
        evidence.probabilities[:, columns], evidence.agreement[:, columns], evidence.sizes
    )
