"""What all data sets of a benchmark share: the model, the vocabulary and the output folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.progress import Progress, silent
from nouncut.errors import printable_path
from nouncut.models.choose import load_encoder
from nouncut.models.encoder import Encoder
from nouncut.paper.bench.output_folder import ResultFolder
from nouncut.runs.encode_texts import encode_nouns
from nouncut.store.store import FeatureStore
from nouncut.words.filters import mean_prompt_features
from nouncut.words.nouns import load_nouns
from nouncut.words.prompts import PROMPTS
from nouncut.words.word_lists import read_words

_NO_PROMPT = ("{}",)


@dataclass(frozen=True)
class BenchSetup:
    """What all data sets of a benchmark share."""

    encoder: Encoder
    words: tuple[str, ...] = field(repr=False)
    # The prompts that nouns are chosen with.
    filter_templates: tuple[str, ...]
    store: FeatureStore
    output: Path
    progress: Progress = silent

    @property
    def model(self) -> str:
        """The model's name; for a model in a folder, the name of the folder."""
        name = self.encoder.name
        return printable_path(Path(name).resolve().name) if Path(name).is_dir() else name

    @property
    def results(self) -> ResultFolder:
        """The results that have been computed."""
        return ResultFolder(self.output / "results")

    @cached_property
    def candidates(self) -> NDArray[np.float32]:
        """Features of all words, the mean over the filter's prompts."""
        return mean_prompt_features(self.encode(self.words, self.filter_templates))

    def encode(self, words: Sequence[str], templates: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the features of words, one array per prompt."""
        return encode_nouns(words, templates, self.encoder, self.store, progress=self.progress)


def load_setup(
    model: str,
    output: Path,
    *,
    vocabulary: Path | None = None,
    quick_nouns: bool = False,
    progress: Progress = silent,
) -> BenchSetup:
    """Load a model and a vocabulary: WordNet's nouns, or a file of words."""
    if vocabulary is not None:
        words = read_words(vocabulary)
    else:
        words = [noun.word for noun in load_nouns()]
    encoder = load_encoder(model).encoder
    templates = filter_templates(encoder, quick_nouns)
    return BenchSetup(encoder, tuple(words), templates, FeatureStore(), output, progress)


def filter_templates(encoder: Encoder, quick: bool = False) -> tuple[str, ...]:
    """Return the prompts that nouns are chosen with."""
    return PROMPTS if encoder.shares_space and not quick else _NO_PROMPT
