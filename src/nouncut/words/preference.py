"""Which of several fitting nouns a person would say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

from nouncut.words.wordnet import Synset, hypernym_path, load_wordnet

# What photographs show. The other lexicographer files hold acts, thoughts, feelings, amounts.
_VISIBLE = frozenset(
    {
        "Tops",
        "animal",
        "artifact",
        "body",
        "food",
        "object",
        "person",
        "phenomenon",
        "plant",
        "substance",
    }
)
# The group that genera, families and orders belong to.
_TAXON = "n07992450"
# From so many mentions on, a word is as common as any.
_COMMON = 100
_COMMONNESS = 0.2
_PER_FURTHER_WORD = 0.85
_INVISIBLE = 0.25
_TAXONOMIC = 0.01
_TOKEN = re.compile(r"[a-z]+")


def readability(word: str, synset: Synset | None) -> float:
    """Return how readily a person would use a word for what a photograph shows.

    Common words are preferred over rare ones, short names over long ones, things over thoughts,
    and everything over the Latin of genera and families. A word is as common as its rarest part
    is in the glosses of WordNet.
    """
    if synset is None:
        return 1.0
    parts = _TOKEN.findall(word.lower()) or [""]
    rarest = min(mentions().get(part, 0) for part in parts)
    factor: float = min(1.0, (1 + rarest) / _COMMON) ** _COMMONNESS
    factor *= _PER_FURTHER_WORD ** (len(parts) - 1)
    if is_taxon(synset):
        return factor * _TAXONOMIC
    return factor if synset.lexicon in _VISIBLE else factor * _INVISIBLE


def is_taxon(synset: Synset) -> bool:
    """Return whether a synset is a genus, a family or the like."""
    return any(step.id == _TAXON for step in hypernym_path(synset))


@cache
def mentions() -> Mapping[str, int]:
    """Return how often every word occurs in the glosses of WordNet's nouns.

    The glosses are about a million words of plain English: enough to tell words in daily use from
    the rest, without a frequency list.
    """
    counts: Counter[str] = Counter()
    for synset in load_wordnet().values():
        counts.update(_TOKEN.findall(synset.gloss.lower()))
    return counts
