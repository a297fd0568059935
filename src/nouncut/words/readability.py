"""How readily a person would use a word for what a photograph shows."""

from __future__ import annotations

import re

from nouncut.words.wordnet import VISIBLE_LEXICONS, Synset, hypernym_path, mentions

# Topics such as "animal" and "food" are good names; events such as "accident" are not.
_GOOD_LEXICONS = frozenset(VISIBLE_LEXICONS) - {"event"} | {"Tops"}
# The synset above genera, families and orders: "taxonomic group".
TAXON = "n07992450"
# Words with this many mentions or more count as equally common.
_COMMON = 100
_COMMONNESS = 0.2
_PER_FURTHER_WORD = 0.85
_INVISIBLE = 0.25
_TAXONOMIC = 0.01
_TOKEN = re.compile(r"[a-z]+")


def readability(word: str, synset: Synset | None) -> float:
    """Return a factor up to 1: larger for common, short words for things, tiny for Latin taxa."""
    if synset is None:
        return 1.0
    parts = _TOKEN.findall(word.lower()) or [""]
    # A compound is as common as its rarest part.
    rarest = min(mentions().get(part, 0) for part in parts)
    factor: float = min(1.0, (1 + rarest) / _COMMON) ** _COMMONNESS
    factor *= _PER_FURTHER_WORD ** (len(parts) - 1)
    if is_taxon(synset):
        return factor * _TAXONOMIC
    return factor if synset.lexicon in _GOOD_LEXICONS else factor * _INVISIBLE


def is_taxon(synset: Synset) -> bool:
    """Return whether a synset is a genus, a family or the like."""
    return any(step.id == TAXON for step in hypernym_path(synset))
