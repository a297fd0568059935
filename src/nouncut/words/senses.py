"""What the nouns of a cluster mean: their senses in each other's company."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nouncut.words.wordnet import Synset, load_wordnet, synsets_of

# A noun gives this share of its weight to the next broader synset, and so on upwards.
DECAY = 0.5
_MOST_STEPS = 5


def broader_synsets(synset: Synset, most_steps: int = _MOST_STEPS) -> dict[str, int]:
    """Return the synsets at or above one, nearest first."""
    table = load_wordnet()
    steps = {synset.id: 0}
    # Breadth first: a dictionary keeps the order in which synsets are reached.
    queue = [synset.id]
    for id_ in queue:
        if steps[id_] == most_steps:
            break
        for parent in table[id_].hypernyms:
            if parent not in steps:
                steps[parent] = steps[id_] + 1
                queue.append(parent)
    return steps


def choose_senses(words: Sequence[str], weights: Sequence[float]) -> list[Synset | None]:
    """Choose the sense of every word that fits the other words best.

    Every word gives its weight to the synsets at and above its senses, half as much at every step.
    The sense of a word is the one whose synsets got most from the *other* words, its second sense
    counting half, its third a third, and so on.
    """
    senses = [synsets_of(word) for word in words]
    above = {sense.id: broader_synsets(sense) for candidates in senses for sense in candidates}
    given = [
        _given(candidates, above, weight)
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


def short_gloss(synset: Synset | None) -> str:
    """Return the definition of a synset without its examples."""
    return "" if synset is None else synset.gloss.split('; "')[0]


def _given(
    senses: Sequence[Synset], above: dict[str, dict[str, int]], weight: float
) -> dict[str, float]:
    """Return what one word gives to synsets: through whichever sense is nearest, once."""
    given: dict[str, float] = {}
    for sense in senses:
        for id_, steps in above[sense.id].items():
            given[id_] = max(given.get(id_, 0.0), weight * DECAY**steps)
    return given


def _best_sense(
    senses: Sequence[Synset],
    above: dict[str, dict[str, int]],
    total: dict[str, float],
    own: dict[str, float],
) -> Synset | None:
    def support(sense: Synset) -> float:
        return sum(
            (total[id_] - own.get(id_, 0.0)) * DECAY**steps
            for id_, steps in above[sense.id].items()
        )

    # The senses come with the most frequent one first, and max keeps the first of equals.
    supports = [support(sense) / rank for rank, sense in enumerate(senses, start=1)]
    best = max(range(len(senses)), key=lambda i: round(supports[i], 12), default=None)
    return None if best is None else senses[best]
