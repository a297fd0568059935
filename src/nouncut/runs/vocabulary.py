"""The words of a run: its vocabulary and the positive nouns chosen from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.checks import warn_user
from nouncut.errors import ParameterError
from nouncut.models.choose import ChosenEncoder
from nouncut.models.encoder import Encoder
from nouncut.runs.collection import Collection
from nouncut.runs.encode_texts import PLAIN, TextEncoding, encode_nouns
from nouncut.runs.job import Job
from nouncut.runs.settings import Settings
from nouncut.words.nouns import NounFilter, noun_words

# Vocabularies up to this size skip the noun filter.
_FEW_WORDS = 1000
_SHOWN_WORDS = 8
_WORDS_AT_ONCE = 10_000


@dataclass(frozen=True)
class Vocabulary:
    """The words that clusters may be named with; features (n_words, e)."""

    words: list[str]
    features: NDArray[np.float32]


@dataclass(frozen=True)
class PositiveNouns:
    """The nouns that anchor a clustering; features (n_nouns, e) for every prompt."""

    words: list[str]
    features: list[NDArray[np.float32]]


def vocabulary_words(settings: Settings) -> list[str]:
    """Return the user's own words, else WordNet's nouns."""
    if settings.vocabulary is not None:
        return list(settings.vocabulary)
    return noun_words(lexicons=settings.lexicons)


def chosen_filter(settings: Settings) -> NounFilter:
    """Return the noun filter that is used."""
    is_small = settings.vocabulary is not None and len(settings.vocabulary) <= _FEW_WORDS
    return settings.noun_filter or ("none" if is_small else "tac")


@dataclass(frozen=True)
class VocabularyEncoding:
    """The words of a run, and the encoding of those that are new."""

    words: list[str]
    texts: TextEncoding

    def finish(self, job: Job) -> Vocabulary:
        """Encode what is left, and return the vocabulary."""
        with job.timed("encoding nouns"):
            return Vocabulary(self.words, self.texts.finish()[0])


def start_vocabulary(model: ChosenEncoder | None, job: Job) -> VocabularyEncoding | None:
    """Find the words that are still to be encoded; None for features of an unknown model."""
    if model is None:
        if job.settings.vocabulary is not None:
            raise ParameterError(
                "`vocabulary` needs a model that can read words: pass the `model` that made the "
                "features."
            )
        return None
    words = vocabulary_words(job.settings)
    if job.settings.vocabulary is not None:
        _warn_of_unknown_words(words, model.encoder, job)
    texts = TextEncoding(words, PLAIN, model.encoder, job.store, progress=job.progress)
    return VocabularyEncoding(words, texts)


def _warn_of_unknown_words(words: list[str], encoder: Encoder, job: Job) -> None:
    unknown: list[str] = []
    for start in range(0, len(words), _WORDS_AT_ONCE):
        job.progress("looking up words", start, len(words))
        unknown += encoder.unknown_texts(words[start : start + _WORDS_AT_ONCE])
    if unknown:
        shown = ", ".join(unknown[:_SHOWN_WORDS])
        more = len(unknown) - _SHOWN_WORDS
        warn_user(
            f"The model {encoder.name} does not know {shown}"
            + (f" and {more:,} more words" if more > 0 else "")
            + ": it compares images with their letters. Choose other words, or CLIP with `model`."
        )


def choose_nouns(
    collection: Collection, vocabulary: Vocabulary | None, n_clusters: int, job: Job
) -> PositiveNouns | None:
    """Choose the nouns that suit the images, and encode them with all prompts."""
    if vocabulary is None or collection.semantic is None or collection.model is None:
        return None
    # scikit-learn takes a second to import.
    from nouncut.words.filters import positive_nouns

    with job.stage("choosing nouns"):
        chosen = positive_nouns(
            collection.semantic,
            vocabulary.features,
            n_clusters,
            method=chosen_filter(job.settings),
            random_state=job.settings.random_state,
        )
    words = [vocabulary.words[i] for i in chosen]
    with job.timed("encoding nouns"):
        features = encode_nouns(
            words,
            job.settings.prompts,
            collection.model.encoder,
            job.store,
            progress=job.progress,
        )
    return PositiveNouns(words, features)
