"""From nouns to concepts: senses, synonyms as one concept, and broader words.

Several breeds in one cluster make "dog" a concept, if the vocabulary has that word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.words.readability import is_taxon, readability
from nouncut.words.spelling import fold_word
from nouncut.words.wordnet import Synset, broader_synsets, load_wordnet, synsets_of

# Nouns further down the list of a cluster never name it.
_NOUNS_PER_CLUSTER = 50
# A synset passes on this share of its weight to each next broader one, up to five steps.
_DECAY = 0.5
_MAX_STEPS = 5


class Concept(NamedTuple):
    """One meaning and the nouns for it, the most usual noun first."""

    nouns: tuple[int, ...]
    synset: Synset | None
    readability: float


def find_concepts(words: Sequence[str], information: NDArray[Any]) -> list[Concept]:
    """Return the concepts of the most informative nouns; information is (n_clusters, n_nouns).

    Nouns of the same sense are one concept. Broader words of the vocabulary are concepts as well.
    """
    senses = noun_senses(words, information)
    members: dict[str, list[int]] = {}
    synsets: dict[str, Synset] = {}
    for noun, synset in senses.items():
        key = f"word {fold_word(words[noun])}" if synset is None else synset.id
        members.setdefault(key, []).append(noun)
        if synset is not None:
            synsets[key] = synset
    for key, noun in _broader_nouns(words, senses, synsets).items():
        members[key] = [noun]
        synsets[key] = load_wordnet()[key]
    return [_concept(nouns, synsets.get(key), words) for key, nouns in members.items()]


def pool_narrower(concepts: Sequence[Concept], n_nouns: int) -> csr_array:
    """Return the (n_nouns, n_concepts) matrix that turns probabilities of nouns into concepts'.

    A concept gets all of its own nouns' probability, half of that one step below, a quarter two
    steps below. So a broad word wins where many narrow words share the probability, but not where
    one narrow word has most of it.
    """
    column = {concept.synset.id: j for j, concept in enumerate(concepts) if concept.synset}
    entries: dict[tuple[int, int], float] = {}
    for j, concept in enumerate(concepts):
        reached = {j: 0}
        if concept.synset is not None and not is_taxon(concept.synset):
            steps = broader_synsets([concept.synset], _MAX_STEPS)
            reached = {column[id_]: step for id_, step in steps.items() if id_ in column}
        for noun in concept.nouns:
            entries |= {(noun, above): _DECAY**step for above, step in reached.items()}
    rows, columns = zip(*entries, strict=True) if entries else ((), ())
    return csr_array(
        (np.array(list(entries.values()), dtype=np.float64), (rows, columns)),
        shape=(n_nouns, len(concepts)),
    )


def choose_senses(words: Sequence[str], weights: Sequence[float]) -> list[Synset | None]:
    """Choose the sense of each word that fits the other words best; None if WordNet lacks it.

    Each word gives its weight to the synsets at and above its senses. A sense is supported by what
    these synsets got from the *other* words; the second sense counts half, the third a third.
    """
    senses = [synsets_of(word) for word in words]
    above = {
        sense.id: broader_synsets([sense], _MAX_STEPS)
        for candidates in senses
        for sense in candidates
    }
    given = [
        _given_weights(candidates, above, weight)
        for candidates, weight in zip(senses, weights, strict=True)
    ]
    total: dict[str, float] = defaultdict(float)
    for part in given:
        for id_, weight in part.items():
            total[id_] += weight
    return [
        _best_sense(candidates, above, total, own)
        for candidates, own in zip(senses, given, strict=True)
    ]


def _given_weights(
    senses: Sequence[Synset], above: Mapping[str, Mapping[str, int]], weight: float
) -> dict[str, float]:
    """Return what one word gives to each synset, by its nearest sense only."""
    given: dict[str, float] = {}
    for sense in senses:
        for id_, steps in above[sense.id].items():
            given[id_] = max(given.get(id_, 0.0), weight * _DECAY**steps)
    return given


def _best_sense(
    senses: Sequence[Synset],
    above: Mapping[str, Mapping[str, int]],
    total: Mapping[str, float],
    own: Mapping[str, float],
) -> Synset | None:
    def support(sense: Synset) -> float:
        return sum(
            (total[id_] - own.get(id_, 0.0)) * _DECAY**steps
            for id_, steps in above[sense.id].items()
        )

    # The most frequent sense comes first, and max returns the first of equals.
    supports = [support(sense) / rank for rank, sense in enumerate(senses, start=1)]
    best = max(range(len(senses)), key=lambda i: round(supports[i], 12), default=None)
    return None if best is None else senses[best]


def noun_senses(words: Sequence[str], information: NDArray[Any]) -> dict[int, Synset | None]:
    """Return the best nouns of all clusters, each with its sense where it is most informative.

    `information` is (n_clusters, n_nouns); WordNet lacks nouns whose sense is None.
    """
    most: dict[int, float] = {}
    chosen: dict[int, Synset | None] = {}
    for row in information:
        best = np.argsort(-row, kind="stable")[:_NOUNS_PER_CLUSTER]
        best = best[row[best] > 0]
        weights = row[best]
        senses = choose_senses([words[noun] for noun in best], weights)
        for noun, weight, sense in zip(best.tolist(), weights.tolist(), senses, strict=True):
            if weight > most.get(noun, 0.0):
                most[noun], chosen[noun] = weight, sense
    return chosen


def _broader_nouns(
    words: Sequence[str], senses: Mapping[int, Synset | None], synsets: Mapping[str, Synset]
) -> dict[str, int]:
    """Return one further noun for each synset above the given ones that has one."""
    index = {fold_word(word): noun for noun, word in enumerate(words)}
    above = dict.fromkeys(
        id_
        for synset in synsets.values()
        # Above genera and families are words like "fish genus", which no picture shows.
        if not is_taxon(synset)
        for id_ in broader_synsets([synset], _MAX_STEPS)
    )
    found: dict[str, int] = {}
    taken = set(senses)
    for id_ in above:
        if id_ in synsets:
            continue
        known = (index.get(fold_word(word)) for word in load_wordnet()[id_].words)
        noun = next((noun for noun in known if noun is not None and noun not in taken), None)
        if noun is not None:
            found[id_] = noun
            taken.add(noun)
    return found


def _concept(nouns: Sequence[int], synset: Synset | None, words: Sequence[str]) -> Concept:
    factors = {noun: readability(words[noun], synset) for noun in nouns}
    # WordNet lists the most usual word of a synset first.
    ranks = {fold_word(word): rank for rank, word in enumerate(synset.words if synset else ())}
    ranked = sorted(
        nouns, key=lambda noun: (ranks.get(fold_word(words[noun]), len(ranks)), -factors[noun])
    )
    return Concept(tuple(ranked), synset, factors[ranked[0]])
