"""How specific a name may be: WordNet's tree above the concepts that a model knows.

The model gives every image probabilities of concepts. Whatever lies above a concept is as probable
as everything below it, so "bird" can be certain where no single kind of bird is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.words.evidence import Evidence
from nouncut.words.readability import TAXON, readability
from nouncut.words.tree import information_bits
from nouncut.words.wordnet import Synset, load_wordnet, synset_rows

# A name must be right with this probability. Most have more: of the names of the clusters that the
# calibration comes from, 5 % were wrong.
LEAST_PROBABILITY = 0.85
# Persons, events and Latin taxa are rarely what a cluster of photographs is about.
_LEAST_OF_RARE = 0.95
_RARE_LEXICONS = frozenset({"person", "event"})
# A word for more than one in 2^4 nouns says nothing: "object", "artifact", "matter". "Animal" and
# "plant" have 4.4 and 4.2 bits.
LEAST_BITS = 4.0
# Words such as "church" are used for a synset even if it is their second sense.
_LAST_RANK = 2
_SMALLEST = 1e-6


@dataclass(frozen=True)
class Calibration:
    """Weights of a logistic model of being right.

    The logit is `offset` plus `mass` times the logit of the mean probability plus `agreement` times
    that of the share of images whose best concept is at or below the name.

    `known` is the usual share of clusters whose kind is among the model's concepts. None stands for
    concepts that cover everything. Otherwise a concept itself, not what is above it, must also be
    exclusive: if several clusters look like a brambling, they are kinds that the model lacks.
    """

    mass: float = 1.0
    agreement: float = 0.0
    offset: float = 0.0
    known: float | None = None


# Logistic regression on 397 clusters of photographs of 73 kinds, rounded. A fifth of the clusters
# had their own kind, or all of its siblings, removed from the network's classes. The slope above 1
# and the offset correct a network that is less sure than it could be. `known` is an assumption: the
# best class was right for 18 % of these clusters, and most show kinds that the network lacks.
CLASSIFIER = Calibration(mass=1.4, agreement=0.25, offset=1.35, known=0.3)
# The softmax over all nouns is taken at its word.
NOUNS = Calibration()
# Clusters of the usual kind that are added when the share of known kinds is estimated, so that a
# collection of one or two clusters does not decide on its own.
_USUAL_CLUSTERS = 2.0


class ConceptTree(NamedTuple):
    """A model's concepts (columns) and everything above them (nodes).

    `above` is (n_columns, n_nodes), `nodes` the node of every column. Names are chosen by `appeal`,
    which is the information in bits, less for words that people rarely use.
    """

    words: tuple[str, ...]
    synsets: tuple[Synset | None, ...]
    above: csr_array
    nodes: NDArray[np.intp]
    bits: NDArray[np.float64]
    appeal: NDArray[np.float64]
    least: NDArray[np.float64]


def concept_tree(concepts: Sequence[Synset | str]) -> ConceptTree:
    """Build the tree above synsets and words that WordNet lacks."""
    number: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    for row, concept in enumerate(concepts):
        keys = [f"word {concept}"] if isinstance(concept, str) else _synsets_above(concept.id)
        for key in keys:
            rows.append(row)
            columns.append(number.setdefault(key, len(number)))
    table = load_wordnet()
    synsets = tuple(None if key.startswith("word ") else table[key] for key in number)
    words = tuple(
        key.removeprefix("word ") if synset is None else usual_word(synset)
        for key, synset in zip(number, synsets, strict=True)
    )
    # The synset itself comes first.
    nodes = np.array(columns, dtype=np.intp)[np.unique(rows, return_index=True)[1]]
    bits = _bits(synsets)
    readable = np.array(list(map(readability, words, synsets)))
    readable[nodes] = 1
    above = csr_array((np.ones(len(rows)), (rows, columns)), (len(concepts), len(number)))
    return ConceptTree(words, synsets, above, nodes, bits, bits * readable, _least(synsets, bits))


def usual_word(synset: Synset) -> str:
    """Return the first word of a synset of which it is one of the most frequent senses."""
    usual = (
        word for word, rank in zip(synset.words, synset.ranks, strict=True) if rank <= _LAST_RANK
    )
    return next(usual, synset.word)


def probability_right(
    evidence: Evidence, tree: ConceptTree, calibration: Calibration
) -> NDArray[np.float64]:
    """Return the (n_clusters, n_nodes) probabilities that a node is right for a cluster."""
    mass = evidence.probabilities @ tree.above
    n_images = evidence.sizes[:, None]
    # Half an image is added, so that a small cluster is never unanimous.
    agreement = ((evidence.agreement @ tree.above).toarray() * n_images + 0.5) / (n_images + 1)
    logits = (
        calibration.offset
        + calibration.mass * _logit(mass)
        + calibration.agreement * _logit(agreement)
    )
    if calibration.known is not None and logits.size:
        _demand_exclusive(logits, evidence.probabilities, tree, calibration.known)
    right = np.asarray(1 / (1 + np.exp(-logits)))
    right[evidence.sizes == 0] = 0
    return right


def choose_nodes(right: NDArray[Any], tree: ConceptTree) -> NDArray[np.intp]:
    """Return the most appealing node of each cluster that is probably right, or -1."""
    fits = right >= tree.least
    appeal = np.where(fits, tree.appeal, -1.0)
    # Of nodes with the same appeal, the more probable one.
    best = (appeal + 1e-6 * right).argmax(axis=1) if len(tree.words) else np.zeros(len(right), int)
    return np.where(fits.any(axis=1), best, -1).astype(np.intp)


def _demand_exclusive(
    logits: NDArray[Any], probabilities: NDArray[Any], tree: ConceptTree, known: float
) -> None:
    """Correct the logits of the concepts themselves, in place."""
    clusters = np.arange(len(logits))
    total = np.maximum(probabilities.sum(axis=0), _SMALLEST)
    own = logits[:, tree.nodes] + np.log(np.maximum(probabilities / total, _SMALLEST))
    best = probabilities.argmax(axis=1)
    own += _prior_shift(own[clusters, best], known)
    logits[:, tree.nodes] = own
    # What is above the best concept is at least as probable.
    highest = own[clusters, best][:, None]
    np.maximum(logits, np.where(tree.above[best].toarray() > 0, highest, -np.inf), out=logits)


def _prior_shift(logits: NDArray[Any], known: float) -> float:
    """Return the change of all logits for the share of known kinds in this collection.

    Expectation maximisation (Saerens et al., 2002): most kinds of a collection are known to the
    model, or few are.
    """
    share, shift = known, 0.0
    for _ in range(100):
        shift = float(_logit(np.array(share)) - _logit(np.array(known)))
        found = (1 / (1 + np.exp(-logits - shift))).sum() + _USUAL_CLUSTERS * known
        share, before = found / (len(logits) + _USUAL_CLUSTERS), share
        if abs(share - before) < _SMALLEST:
            break
    return shift


def _logit(p: NDArray[Any]) -> NDArray[Any]:
    p = np.clip(p, _SMALLEST, 1 - _SMALLEST)
    return np.asarray(np.log(p / (1 - p)))


@cache
def _synsets_above(id_: str) -> tuple[str, ...]:
    """Return the ids at and above a synset, itself first."""
    parents = (
        above for parent in load_wordnet()[id_].hypernyms for above in _synsets_above(parent)
    )
    return tuple(dict.fromkeys((id_, *parents)))


def _bits(synsets: Sequence[Synset | None]) -> NDArray[np.float64]:
    """Return the information of synsets; words that WordNet lacks are as specific as any."""
    bits = np.full(len(synsets), information_bits().max())
    known = [node for node, synset in enumerate(synsets) if synset is not None]
    rows = synset_rows([synset.id for synset in synsets if synset is not None])
    bits[known] = information_bits()[rows]
    return bits


def _least(synsets: Sequence[Synset | None], bits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probability that each node needs to be a name; infinite if it cannot be one."""
    is_rare = np.array(
        [
            synset is not None
            and (synset.lexicon in _RARE_LEXICONS or TAXON in _synsets_above(synset.id))
            for synset in synsets
        ],
        dtype=bool,
    )
    least = np.where(is_rare, _LEAST_OF_RARE, LEAST_PROBABILITY)
    return np.where(bits < LEAST_BITS, np.inf, least)
