"""Names for clusters: one distinct noun each, chosen for all clusters at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.utils import check_array

from nouncut.compute.checks import check_nouns, check_positive
from nouncut.compute.progress import Progress
from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import count_threads
from nouncut.errors import ParameterError
from nouncut.words.concepts import find_concepts, pool_narrower
from nouncut.words.evidence import cluster_probabilities, information, spread_tau
from nouncut.words.filters import check_same_width, mean_prompt_features
from nouncut.words.spelling import fold_variants, fold_word

_FLOATS = (np.float64, np.float32)
# A concept whose score is below this share of the cluster's best does not name the cluster.
_WORST_RATIO = 0.01
_TIE = 1e-3
# A word with less than half of the probability is a guess.
_LEAST_SURE = 0.5
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class ClusterName:
    """The name of a cluster, further words, the definition of the name, and how sure it is.

    Parameters
    ----------
    name : str
        Differs from the names of all other clusters.
    more_words : tuple of str
        Alternatives in meaning, the best first.
    gloss : str
        Definition of the name in the sense meant; empty if WordNet lacks it.
    confidence : float
        Estimated probability that the name is right.
    guess : bool
        Whether the name only says what the cluster looks like.
    """

    name: str
    more_words: tuple[str, ...]
    gloss: str
    confidence: float
    guess: bool = False


def name_clusters(
    labels: ArrayLike,
    semantic_features: ArrayLike,
    nouns: Sequence[str],
    noun_features: ArrayLike | Sequence[ArrayLike],
    *,
    tau: float | None = None,
    n_more: int = 3,
    n_jobs: int | None = 1,
    progress: Progress | None = None,
) -> list[ClusterName]:
    """Name each cluster by a word of a list that distinguishes it from the rest of the collection.

    The score of a noun combines its probability in the cluster, its lift over the collection, and
    how readily a person would use the word. Synonyms count as one concept, and broader words gain
    from the narrower ones below them. No two clusters get the same noun; if there are too few
    nouns, names are numbered ("dog", "dog 2").

    Parameters
    ----------
    labels : array-like of int of shape (n_images,)
        Clusters of the images, from 0; images with negative labels belong to none.
    semantic_features : array-like of shape (n_images, d)
        Image features in the space of the nouns; all-zero rows are ignored.
    nouns : sequence of str
        The vocabulary to choose names from. It may contain words that WordNet lacks. The whole
        of `nouncut.words.nouns.load_nouns` gives names as good as those from the positive nouns,
        and the names then do not depend on the choice of positive nouns, but it takes longer.
    noun_features : array-like of shape (n_nouns, d) or sequence of such
        Noun features, one array or one per prompt; the plain template "{}" is enough.
    tau : float, optional
        Temperature of the softmax over nouns; by default half the spread of the cosines.
    n_more : int, default=3
        The number of further words for each cluster.
    n_jobs : int, default=1
        Threads; -1 for all cores. The names do not depend on it.
    progress : callable, optional
        Called with the stage ("naming groups"), the number of clusters done and the total.

    Returns
    -------
    list of ClusterName
        One for each label from 0 to the largest. A cluster that no noun distinguishes is called
        "group 0", "group 1" and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.words.cluster_names import name_clusters
    >>> nouns = ["spaniel", "poodle", "dog", "car", "automobile"]
    >>> features = np.array([[3.0, 1, 0], [3, -1, 0], [3, 0, 0.5], [0, 0, 1], [0, 0.1, 1]])
    >>> images = np.array([[3, 0.9, 0], [3, -0.9, 0], [0, 0, 1], [0, 0, 1]])
    >>> for cluster in name_clusters([0, 0, 1, 1], images, nouns, features):
    ...     print(cluster.name, cluster.more_words, "|", cluster.gloss[:42])
    dog ('spaniel', 'poodle') | a member of the genus Canis (probably desc
    car () | a motor vehicle with four wheels; usually
    """
    clusters, features = _check_images(labels, semantic_features)
    if tau is not None:
        check_positive({"tau": tau}, Real)
    if n_more < 0:
        raise ParameterError(f"`n_more` must be a whole number of at least 0; got {n_more!r}.")
    n_clusters = int(clusters.max(initial=-1)) + 1
    nameless = [_nameless(cluster) for cluster in range(n_clusters)]
    if not len(nouns):
        return nameless
    words, vectors = _distinct_nouns(nouns, noun_features, features.shape[1])
    images = unit_rows(features).astype(np.float32, copy=False)
    clusters = np.where(images.any(axis=1), clusters, -1)
    if not (clusters >= 0).any():
        return nameless
    tau = spread_tau(images[clusters >= 0], vectors) if tau is None else tau
    probabilities = cluster_probabilities(
        clusters,
        images,
        vectors,
        n_clusters,
        tau=tau,
        n_threads=count_threads(n_jobs),
        progress=progress,
    )
    sizes = np.bincount(clusters[clusters >= 0], minlength=n_clusters)
    return _choose_names(words, probabilities, sizes, n_more)


def assign_names(scores: NDArray[Any]) -> NDArray[np.intp]:
    """Assign a distinct column of (n_clusters, n_names) to each row, or -1 where none fits.

    The product of all scores is as large as possible.
    """
    n_clusters, n_names = scores.shape
    if not n_names:
        return np.full(n_clusters, -1, dtype=np.intp)
    # Only ratios within a cluster matter: a strong cluster must not cost a weak one its name.
    best = scores.max(axis=1, keepdims=True)
    ratios = scores / np.where(best > 0, best, 1)
    fits = ratios > _WORST_RATIO
    # One extra column per cluster means "no name".
    costs = np.empty((n_clusters, n_names + n_clusters))
    # Ties go to the cluster that the name fits best.
    costs[:, n_names:] = -np.log(_WORST_RATIO) + _TIE * best / max(best.max(), _TINY)
    costs[:, :n_names] = np.where(
        fits, -np.log(np.where(fits, ratios, 1)), -10 * np.log(_WORST_RATIO)
    )
    _, chosen = linear_sum_assignment(costs)
    return np.where(chosen < n_names, chosen, -1)


def _choose_names(
    words: Sequence[str], probabilities: NDArray[Any], sizes: NDArray[Any], n_more: int
) -> list[ClusterName]:
    concepts = find_concepts(words, information(probabilities, sizes, 1 / len(words)))
    candidates = [words[concept.nouns[0]] for concept in concepts]
    readability = np.array([concept.readability for concept in concepts])
    pool = pool_narrower(concepts, len(words))
    pooled = _pooled_information(probabilities, sizes, pool)
    scores = pooled * readability
    # Broad words make good names, but beside the name "parachute" the word "equipment" is useless.
    covered = np.minimum(probabilities @ (pool > 0), 1)
    narrow_scores = _pooled_information(probabilities, sizes, pool == 1) * readability
    names: list[ClusterName] = []
    taken = {fold_word(word) for word in candidates}
    for cluster, assigned in enumerate(assign_names(scores)):
        if not scores[cluster].any():
            names.append(_nameless(cluster, taken))
            continue
        chosen = int(scores[cluster].argmax() if assigned < 0 else assigned)
        name = candidates[chosen]
        if assigned < 0:
            name = numbered(name, taken)
            taken.add(fold_word(name))
        more = _more_words(candidates, narrow_scores[cluster], candidates[chosen], n_more)
        synset = concepts[chosen].synset
        gloss = "" if synset is None else synset.definition
        sure = float(covered[cluster, chosen])
        names.append(ClusterName(name, more, gloss, sure, guess=sure < _LEAST_SURE))
    return names


def _pooled_information(
    probabilities: NDArray[Any], sizes: NDArray[Any], pool: csr_array
) -> NDArray[np.float64]:
    uniform = np.asarray(pool.sum(axis=0)) / pool.shape[0]
    return information(probabilities @ pool, sizes, uniform)


def _more_words(
    candidates: Sequence[str], scores: NDArray[Any], name: str, n_more: int
) -> tuple[str, ...]:
    """Return the best words besides the name, without variants in spelling."""
    more = {fold_variants(name): name}
    for j in np.argsort(-scores, kind="stable"):
        if len(more) > n_more or scores[j] <= 0:
            break
        more.setdefault(fold_variants(candidates[j]), candidates[j])
    return tuple(more.values())[1:]


def group_name(cluster: int) -> str:
    """Return the name of a cluster that no word describes: its number."""
    return f"group {cluster}"


def numbered(name: str, taken: Collection[str]) -> str:
    """Return a name with the first number that makes it new."""
    number = 2
    while fold_word(f"{name} {number}") in taken:
        number += 1
    return f"{name} {number}"


def _nameless(cluster: int, taken: Collection[str] = ()) -> ClusterName:
    name = group_name(cluster)
    return ClusterName(numbered(name, taken) if name in taken else name, (), "", 0.0)


def _check_images(
    labels: ArrayLike, semantic_features: ArrayLike
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    clusters = np.asarray(labels)
    if clusters.ndim != 1 or (len(clusters) and not np.issubdtype(clusters.dtype, np.integer)):
        raise ParameterError("`labels` must be a list of whole numbers, one per image.")
    features = check_array(
        semantic_features, dtype=_FLOATS, input_name="semantic_features", ensure_min_samples=0
    )
    if len(features) != len(clusters):
        raise ParameterError(
            f"`semantic_features` has {len(features)} rows, but `labels` has {len(clusters)}. "
            "Both must describe the same images in the same order."
        )
    return clusters.astype(np.intp), features


def _distinct_nouns(
    nouns: Sequence[str], noun_features: Any, n_features: int
) -> tuple[list[str], NDArray[np.float32]]:
    """Return each word once with its features; of "Dog" and "dog", the lower-case one."""
    vectors = mean_prompt_features(noun_features)
    words = check_nouns(nouns, len(vectors))
    check_same_width(vectors.shape[1], n_features, "semantic_features")
    kept: dict[str, int] = {}
    for noun, word in enumerate(words):
        key = fold_word(word)
        if key and (key not in kept or (word == key != words[kept[key]])):
            kept[key] = noun
    rows = sorted(kept.values())
    return [words[row] for row in rows], vectors[rows]
