"""From nouns to concepts: synonyms as one, and broader words for what clusters show kinds of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.words.preference import is_taxon, readability
from nouncut.words.senses import DECAY, broader_synsets, choose_senses
from nouncut.words.spelling import fold_word
from nouncut.words.wordnet import Synset, load_wordnet

# Of tens of thousands of nouns, those far down the list of a cluster name nothing.
_NOUNS_PER_CLUSTER = 50


class Concept(NamedTuple):
    """What one or several nouns of the vocabulary mean."""

    nouns: tuple[int, ...]
    synset: Synset | None
    readability: float


def find_concepts(words: Sequence[str], told: NDArray[Any]) -> list[Concept]:
    """Return the concepts that the best nouns of the clusters stand for.

    A noun has the sense that fits the other nouns of the cluster it tells most about. Nouns of
    one sense are one concept. Broader words are concepts too where the vocabulary has them:
    for a cluster of many breeds, "dog".
    """
    meanings = _meanings(words, told)
    members: dict[str, list[int]] = {}
    synsets: dict[str, Synset] = {}
    for noun, synset in meanings.items():
        key = f"word {fold_word(words[noun])}" if synset is None else synset.id
        members.setdefault(key, []).append(noun)
        if synset is not None:
            synsets[key] = synset
    for key, noun in _broader_nouns(words, meanings, synsets).items():
        members[key] = [noun]
        synsets[key] = load_wordnet()[key]
    return [_concept(nouns, synsets.get(key), words) for key, nouns in members.items()]


def pool_narrower(concepts: Sequence[Concept], n_nouns: int) -> csr_array:
    """Return the matrix that pools the probabilities of nouns into those of concepts.

    A concept has the probability of its nouns, half that of the concepts one step below it, a
    quarter of those two steps below, and so on. So a broad word outweighs the narrow ones where
    many of them share the probability, and not where one of them has it.
    """
    column = {concept.synset.id: j for j, concept in enumerate(concepts) if concept.synset}
    entries: dict[tuple[int, int], float] = {}
    for j, concept in enumerate(concepts):
        reached = {j: 0}
        if concept.synset is not None and not is_taxon(concept.synset):
            steps = broader_synsets(concept.synset)
            reached = {column[id_]: step for id_, step in steps.items() if id_ in column}
        for noun in concept.nouns:
            entries |= {(noun, above): DECAY**step for above, step in reached.items()}
    rows, columns = zip(*entries, strict=True) if entries else ((), ())
    return csr_array(
        (np.array(list(entries.values()), dtype=np.float64), (rows, columns)),
        shape=(n_nouns, len(concepts)),
    )


def _meanings(words: Sequence[str], told: NDArray[Any]) -> dict[int, Synset | None]:
    """Return the best nouns of all clusters with the sense each has where it tells most."""
    most: dict[int, float] = {}
    meanings: dict[int, Synset | None] = {}
    for row in told:
        best = np.argsort(-row, kind="stable")[:_NOUNS_PER_CLUSTER]
        best = best[row[best] > 0]
        weights = row[best]
        senses = choose_senses([words[noun] for noun in best], weights)
        for noun, weight, sense in zip(best.tolist(), weights.tolist(), senses, strict=True):
            if weight > most.get(noun, 0.0):
                most[noun], meanings[noun] = weight, sense
    return meanings


def _broader_nouns(
    words: Sequence[str], meanings: Mapping[int, Synset | None], synsets: Mapping[str, Synset]
) -> dict[str, int]:
    """Return further nouns by the id of a synset above the given ones."""
    index = {fold_word(word): noun for noun, word in enumerate(words)}
    above = dict.fromkeys(
        id_
        for synset in synsets.values()
        # What is above genera and families, such as "fish genus", is nothing to be seen.
        if not is_taxon(synset)
        for id_ in broader_synsets(synset)
    )
    found: dict[str, int] = {}
    taken = set(meanings)
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
    # WordNet lists the usual word of a synset first.
    usual = {fold_word(word): -rank for rank, word in enumerate(synset.words if synset else ())}
    ranked = sorted(
        nouns, key=lambda noun: (-usual.get(fold_word(words[noun]), -99), -factors[noun])
    )
    return Concept(tuple(ranked), synset, factors[ranked[0]])
