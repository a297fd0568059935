"""The nouns of a run: candidates, the chosen ones, their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.progress import Progress
from nouncut.models.encoder import Encoder
from nouncut.runs.encode import encode_nouns
from nouncut.runs.settings import Settings
from nouncut.store.store import FeatureStore
from nouncut.words.filters import positive_nouns
from nouncut.words.nouns import load_nouns

# Nouns are filtered and names are chosen without a prompt around them: one text per noun instead
# of seven, and the same names.
PLAIN = ("{}",)
# So many words of one's own are used as they are.
_FEW_WORDS = 1000


@dataclass(frozen=True)
class Candidates:
    """The nouns that clusters may be anchored by and named with."""

    words: list[str]
    features: NDArray[np.float32]


@dataclass(frozen=True)
class ChosenNouns:
    """The nouns that anchor a clustering."""

    words: list[str]
    features: list[NDArray[np.float32]]


def candidate_words(settings: Settings) -> list[str]:
    """Return the words that settings permit."""
    if settings.words is not None:
        return list(settings.words)
    return [noun.word for noun in load_nouns(lexicons=settings.lexicons)]


def encode_candidates(
    words: list[str], encoder: Encoder, store: FeatureStore, progress: Progress | None = None
) -> Candidates:
    """Encode candidate nouns."""
    return Candidates(words, encode_nouns(words, PLAIN, encoder, store, progress=progress)[0])


def choose_nouns(
    candidates: Candidates,
    semantic: NDArray[Any],
    n_clusters: int,
    settings: Settings,
    encoder: Encoder,
    store: FeatureStore,
    progress: Progress | None = None,
) -> ChosenNouns:
    """Choose the nouns that suit a collection, and encode them with all prompts."""
    few = settings.words is not None and len(settings.words) <= _FEW_WORDS
    method = settings.noun_filter or ("none" if few else "tac")
    chosen = positive_nouns(
        semantic, candidates.features, n_clusters, method=method, random_state=settings.seed
    )
    words = [candidates.words[i] for i in chosen]
    return ChosenNouns(
        words, encode_nouns(words, settings.templates, encoder, store, progress=progress)
    )
