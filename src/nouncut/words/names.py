"""Names of clusters: from features and nouns to one distinct name per cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_array

from nouncut.compute.checks import check_nouns, check_positive
from nouncut.compute.rows import unit_rows
from nouncut.words.assignment import assign_names
from nouncut.words.concepts import Concept, find_concepts, pool_narrower
from nouncut.words.evidence import cluster_probabilities, information, spread_tau
from nouncut.words.filters import mean_prompt_features
from nouncut.words.senses import short_gloss
from nouncut.words.spelling import fold_word

_FLOATS = (np.float64, np.float32)


@dataclass(frozen=True)
class ClusterName:
    """What a cluster is called."""

    name: str
    more_words: tuple[str, ...]
    gloss: str
    score: float


def name_clusters(
    labels: ArrayLike,
    semantic_features: ArrayLike,
    nouns: Sequence[str],
    noun_features: ArrayLike | Sequence[ArrayLike],
    *,
    tau: float | None = None,
    n_more: int = 3,
) -> list[ClusterName]:
    """Name every cluster by the nouns that tell it from the rest of the collection.

    A noun scores by its probability in the cluster and its lift over the collection, times how
    readily a person would say it. Synonyms count as one, and broader words gain from the narrower
    ones below them. All clusters are named at once, each by a noun of its own; where the nouns
    do not suffice, names are numbered ("dog", "dog 2").

    Parameters
    ----------
    labels : array-like of int of shape (n_images,)
        Clusters of the images, from 0; images with negative labels are in none.
    semantic_features : array-like of shape (n_images, d)
        Image features in the space of the nouns; rows of zeros are passed over.
    nouns : sequence of str
        Words to choose names from. All of `nouncut.words.nouns.load_nouns` with the plain
        template "{}" name no worse than the positive nouns of the clustering, and the names do
        not depend on which nouns those happened to be; the positive nouns are faster. A user's
        own list may have words that WordNet lacks.
    noun_features : array-like of shape (n_nouns, d) or sequence of such
        Noun features, one array or one per prompt.
    tau : float, optional
        Temperature of the softmax over nouns; by default what `spread_tau` chooses.
    n_more : int, default=3
        How many further words to give.

    Returns
    -------
    list of ClusterName
        One for every label from 0 to the largest; "cluster 1" and so on for those that no noun
        tells anything about.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.words.names import name_clusters
    >>> nouns = ["spaniel", "poodle", "dog", "car", "automobile"]
    >>> features = np.array([[3.0, 1, 0], [3, -1, 0], [3, 0, 0.5], [0, 0, 1], [0, 0.1, 1]])
    >>> images = np.array([[3, 0.9, 0], [3, -0.9, 0], [0, 0, 1], [0, 0, 1]])
    >>> for cluster in name_clusters([0, 0, 1, 1], images, nouns, features):
    ...     print(cluster.name, cluster.more_words, "|", cluster.gloss[:42])
    dog ('spaniel', 'poodle') | a member of the genus Canis (probably desc
    car () | a motor vehicle with four wheels; usually
    """
    clusters = _check_labels(labels)
    features = check_array(
        semantic_features, dtype=_FLOATS, input_name="semantic_features", ensure_min_samples=0
    )
    if len(features) != len(clusters):
        raise ValueError(
            f"semantic_features has {len(features)} rows, but there are {len(clusters)} labels: "
            "both must describe the same images in the same order."
        )
    if tau is not None:
        check_positive({"tau": tau}, Real)
    if n_more < 0:
        raise ValueError(f"n_more must be a whole number of at least 0; got {n_more!r}.")
    n_clusters = int(clusters.max(initial=-1)) + 1
    if not len(nouns):
        return [_nameless(cluster) for cluster in range(n_clusters)]
    words, vectors = _distinct_nouns(nouns, noun_features, features.shape[1])
    images = unit_rows(features).astype(np.float32, copy=False)
    clusters = np.where(images.any(axis=1), clusters, -1)
    if not (clusters >= 0).any():
        return [_nameless(cluster) for cluster in range(n_clusters)]
    tau = spread_tau(images[clusters >= 0], vectors) if tau is None else tau
    probabilities = cluster_probabilities(clusters, images, vectors, n_clusters, tau=tau)
    sizes = np.bincount(clusters[clusters >= 0], minlength=n_clusters)
    return _name(words, probabilities, sizes, n_more)


def _name(
    words: Sequence[str], probabilities: NDArray[Any], sizes: NDArray[Any], n_more: int
) -> list[ClusterName]:
    n_nouns = len(words)
    concepts = find_concepts(words, information(probabilities, sizes, 1 / n_nouns))
    readable = np.array([concept.readability for concept in concepts])
    pool = pool_narrower(concepts, n_nouns)
    told = _pooled_information(probabilities, sizes, pool)
    scores = told * readable
    # Broad words do as names, but "equipment" tells nobody more about "parachute".
    own = _pooled_information(probabilities, sizes, pool == 1) * readable
    names: list[ClusterName] = []
    taken = {fold_word(words[concept.nouns[0]]) for concept in concepts}
    for cluster, concept in enumerate(assign_names(scores)):
        if not scores[cluster].any():
            names.append(_nameless(cluster, taken))
            continue
        chosen = int(scores[cluster].argmax() if concept < 0 else concept)
        name = words[concepts[chosen].nouns[0]]
        if concept < 0:
            name = _numbered(name, taken)
            taken.add(fold_word(name))
        order = [j for j in np.argsort(-own[cluster], kind="stable") if own[cluster, j] > 0]
        more = _more_words([concepts[j] for j in order], concepts[chosen], words, n_more)
        gloss = short_gloss(concepts[chosen].synset)
        names.append(ClusterName(name, more, gloss, float(told[cluster, chosen])))
    return names


def _pooled_information(
    probabilities: NDArray[Any], sizes: NDArray[Any], pool: csr_array
) -> NDArray[np.float64]:
    uniform = np.asarray(pool.sum(axis=0)) / pool.shape[0]
    return information(probabilities @ pool, sizes, uniform)


def _more_words(
    concepts: Sequence[Concept], chosen: Concept, words: Sequence[str], n_more: int
) -> tuple[str, ...]:
    """Return the best words other than the name, leaving out other spellings of a word."""
    seen = {_spelling(words[chosen.nouns[0]])}
    more: list[str] = []
    for concept in concepts:
        word = words[concept.nouns[0]]
        if len(more) == n_more:
            break
        if concept is not chosen and _spelling(word) not in seen:
            seen.add(_spelling(word))
            more.append(word)
    return tuple(more)


def _spelling(word: str) -> str:
    """Return what "hot dog", "hotdog", "hot-dogs" have in common."""
    letters = fold_word(word).replace("-", "").replace(" ", "")
    return letters if letters.endswith("ss") else letters.removesuffix("s")


def _numbered(name: str, taken: Collection[str]) -> str:
    number = 2
    while fold_word(f"{name} {number}") in taken:
        number += 1
    return f"{name} {number}"


def _nameless(cluster: int, taken: Collection[str] = ()) -> ClusterName:
    name = f"cluster {cluster + 1}"
    return ClusterName(_numbered(name, taken) if name in taken else name, (), "", 0.0)


def _check_labels(labels: ArrayLike) -> NDArray[np.intp]:
    checked = np.asarray(labels)
    if checked.ndim != 1 or (len(checked) and not np.issubdtype(checked.dtype, np.integer)):
        raise ValueError("labels must be a list of whole numbers, one per image.")
    return checked.astype(np.intp)


def _distinct_nouns(
    nouns: Sequence[str], noun_features: Any, n_features: int
) -> tuple[list[str], NDArray[np.float32]]:
    """Return every word once, in lower case where it also occurs so, with its feature."""
    vectors = mean_prompt_features(noun_features)
    words = check_nouns(nouns, len(vectors))
    if vectors.shape[1] != n_features:
        raise ValueError(
            f"noun_features has {vectors.shape[1]} columns, but semantic_features {n_features}: "
            "encode nouns and images with the same model."
        )
    kept: dict[str, int] = {}
    for noun, word in enumerate(words):
        key = fold_word(word)
        if key and (key not in kept or (word == key != words[kept[key]])):
            kept[key] = noun
    rows = sorted(kept.values())
    return [words[row] for row in rows], vectors[rows]
