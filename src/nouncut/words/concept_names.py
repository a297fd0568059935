"""Names that are never wrong, only less exact, from what a model says about clusters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.words.backoff import (
    Calibration,
    ConceptTree,
    choose_nodes,
    concept_tree,
    probability_right,
)
from nouncut.words.cluster_names import ClusterName, group_name, numbered
from nouncut.words.evidence import Evidence, information
from nouncut.words.spelling import fold_variants, fold_word
from nouncut.words.wordnet import Synset

# Concepts with less of the evidence are noise: no cluster is "like" them.
_LEAST_LIKE = 0.05
# Beside a name that is right, weaker evidence is of use.
_LEAST_BESIDE = 0.02
_LIKES = 2


def name_by_concepts(
    evidence: Evidence,
    concepts: Sequence[Synset | str],
    *,
    calibration: Calibration,
    n_more: int = 3,
) -> list[ClusterName]:
    """Name each cluster by the most specific word that is probably right.

    Parameters
    ----------
    evidence : Evidence
        What the images of the clusters show, over concepts.
    concepts : sequence of Synset or str
        The concepts; a str is a word that WordNet lacks.
    calibration : Calibration
        How the evidence becomes a probability of being right.
    n_more : int, default=3
        The number of further words for each cluster.

    Returns
    -------
    list of ClusterName
        One per cluster. Where no word is right with high probability, the name says what the
        cluster looks like ("like hotdog, French loaf") and is marked as a guess; where it looks
        like nothing, it is "group 7". Clusters that share a word get another one in brackets:
        "bird (like magpie)".

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.words.backoff import NOUNS
    >>> from nouncut.words.concept_names import name_by_concepts
    >>> from nouncut.words.evidence import gather_evidence
    >>> from nouncut.words.wordnet import synsets_of
    >>> concepts = [synsets_of(word)[0] for word in ("robin", "magpie", "hotdog", "truck")]
    >>> images = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1]])
    >>> evidence = gather_evidence(np.arange(3), 3, 4, images.__getitem__)
    >>> for cluster in name_by_concepts(evidence, concepts, calibration=NOUNS):
    ...     print(cluster.name, cluster.more_words, round(cluster.confidence, 2), cluster.guess)
    bird ('robin', 'magpie') 1.0 False
    like hotdog, truck () 0.5 True
    truck ('motortruck',) 1.0 False
    """
    tree = concept_tree(concepts)
    right = probability_right(evidence, tree, calibration)
    chosen = choose_nodes(right, tree)
    likes = [
        _likes(evidence, tree, cluster, least=_LEAST_LIKE if node < 0 else _LEAST_BESIDE)
        for cluster, node in enumerate(chosen)
    ]
    names = _distinct_names(evidence, tree, chosen, likes)
    return [
        _cluster_name(name, tree, int(chosen[cluster]), likes[cluster], right[cluster], n_more)
        for cluster, name in enumerate(names)
    ]


def _likes(
    evidence: Evidence,
    tree: ConceptTree,
    cluster: int,
    siblings: NDArray[np.intp] | None = None,
    below: int = -1,
    least: float = _LEAST_BESIDE,
) -> list[int]:
    """Return nodes that a cluster looks like, those that distinguish it from siblings first."""
    rows = np.arange(len(evidence.sizes)) if siblings is None else siblings
    own = evidence.probabilities[cluster]
    columns = np.flatnonzero(own >= least)
    part = evidence.probabilities[np.ix_(rows, columns)].astype(np.float64)
    contrast = information(part, evidence.sizes[rows], 1 / len(own))[rows == cluster].reshape(-1)
    # Contrast alone is a small difference, which a few more images can turn around.
    scores = own[columns] + contrast
    order = np.lexsort((-own[columns], -scores))
    nodes = tree.nodes[columns[order]]
    if below >= 0:
        is_below = tree.above[columns[order]][:, [below]].toarray().ravel() > 0
        nodes = nodes[is_below & (nodes != below)]
    return list(dict.fromkeys(nodes.tolist()))


def _distinct_names(
    evidence: Evidence, tree: ConceptTree, chosen: NDArray[np.intp], likes: Sequence[list[int]]
) -> list[str]:
    """Return the names of all clusters; those that share a word are told apart by others."""
    groups: dict[str, list[int]] = defaultdict(list)
    for cluster, node in enumerate(chosen.tolist()):
        if node >= 0:
            groups[fold_word(tree.words[node])].append(cluster)
    names = [_guess(cluster, tree, nodes) for cluster, nodes in enumerate(likes)]
    for clusters in groups.values():
        for cluster, name in zip(
            clusters, _told_apart(evidence, tree, chosen, clusters), strict=True
        ):
            names[cluster] = name
    taken: set[str] = set()
    for cluster, name in enumerate(names):
        names[cluster] = numbered(name, taken) if fold_word(name) in taken else name
        taken.add(fold_word(names[cluster]))
    return names


def _told_apart(
    evidence: Evidence, tree: ConceptTree, chosen: NDArray[np.intp], clusters: list[int]
) -> Iterator[str]:
    """Yield the names of clusters that share a word: "bird (like magpie)"."""
    words = [tree.words[chosen[cluster]] for cluster in clusters]
    if len(clusters) == 1:
        yield words[0]
        return
    siblings = np.array(clusters)
    likes = [
        [
            tree.words[node]
            for node in _likes(evidence, tree, cluster, siblings, below=int(chosen[cluster]))
        ]
        for cluster in clusters
    ]
    first = [found[:1] for found in likes]
    for word, found, one in zip(words, likes, first, strict=True):
        shown = one if first.count(one) == 1 else found[:_LIKES]
        yield f"{word} (like {', '.join(shown)})" if shown else word


def _guess(cluster: int, tree: ConceptTree, likes: list[int]) -> str:
    if not likes:
        return group_name(cluster)
    return f"like {', '.join(tree.words[node] for node in likes[:_LIKES])}"


def _cluster_name(
    name: str, tree: ConceptTree, node: int, likes: list[int], right: NDArray[Any], n_more: int
) -> ClusterName:
    said = fold_word(name)
    synset = tree.synsets[node] if node >= 0 else None
    alternatives = [tree.words[like] for like in likes if like != node]
    if synset is not None and node in tree.nodes:
        # Synonyms of a broad word would say no more. Capitals mark Latin names ("Tinca tinca")
        # where the usual word has none.
        usual = tree.words[node]
        alternatives += [word for word in synset.words if usual != usual.lower() or word.islower()]
    more = {fold_variants(word): word for word in reversed(alternatives)}
    ordered = sorted(more.values(), key=alternatives.index)
    kept = tuple(word for word in ordered if fold_word(word) not in said)[:n_more]
    best = node if node >= 0 else next(iter(likes), -1)
    return ClusterName(
        name,
        kept,
        synset.definition if synset is not None else "",
        float(right[best]) if best >= 0 else 0.0,
        guess=node < 0 and bool(likes),
    )
