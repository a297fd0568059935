"""One data set under one model: everything that methods are given, as it is asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.progress import Progress
from nouncut.errors import printable_path
from nouncut.models.encoder import Encoder
from nouncut.paper.baselines.method import Problem
from nouncut.paper.bench.encoding import EncodedSource, encode_source, source_keys
from nouncut.paper.bench.files import write_whole_json
from nouncut.paper.datasets.dataset import Dataset
from nouncut.paper.tables.layouts import Vocabulary
from nouncut.runs.encode import encode_nouns
from nouncut.store.store import FeatureStore
from nouncut.words.filters import mean_prompt_features, positive_nouns
from nouncut.words.leakage import remove_class_names
from nouncut.words.prompts import PROMPTS

# Raise whenever the same data set and model would make other problems.
PROBLEM_VERSION = 1
_PLAIN = ("{}",)


@dataclass(frozen=True)
class Workshop:
    """What all data sets of a benchmark share."""

    encoder: Encoder
    words: tuple[str, ...] = field(repr=False)
    filter_templates: tuple[str, ...]
    store: FeatureStore
    output: Path
    progress: Progress | None = None

    @property
    def model(self) -> str:
        """The model's name; of a model in a folder, the folder's name alone."""
        name = self.encoder.name
        return printable_path(Path(name).resolve().name) if Path(name).is_dir() else name

    @cached_property
    def candidates(self) -> NDArray[np.float32]:
        """Features of the nouns to choose from, the mean over the filter's prompts."""
        return mean_prompt_features(self.encode(self.words, self.filter_templates))

    def encode(self, words: Sequence[str], templates: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return features of words."""
        return encode_nouns(words, templates, self.encoder, self.store, progress=self.progress)


def filter_templates(encoder: Encoder, quick: bool = False) -> tuple[str, ...]:
    """Return the prompts that nouns are chosen with."""
    return PROMPTS if encoder.shares_space and not quick else _PLAIN


class Subject:
    """One data set under one model.

    Images are encoded when it is made; nouns are chosen when a problem is asked for, and kept.
    """

    def __init__(self, dataset: Dataset, workshop: Workshop) -> None:
        self.name = dataset.name
        self._workshop = workshop
        self._train = None if dataset.train is dataset.test else self._encode(dataset, "train")
        self._test = self._encode(dataset, "test")
        present, labels = np.unique(dataset.labels[self._test.kept], return_inverse=True)
        self.labels: NDArray[np.intp] = labels
        self.n_clusters = len(present)
        self.n_skipped = len(dataset.test) - len(labels)
        self._class_names = [dataset.class_names[i] for i in present]

    def facts(self, seed: int, vocabulary: Vocabulary = "full") -> dict[str, Any]:
        """Return everything that decides a problem."""
        workshop = self._workshop
        train = self._train or self._test
        return {
            "version": PROBLEM_VERSION,
            "dataset": self.name,
            "classes": self._class_names,
            "test": _digest([self._test.images.hashes, self.labels.tolist()]),
            "train": _digest(train.images.hashes),
            "model": workshop.encoder.fingerprint,
            "words": _digest(workshop.words),
            "filter_templates": workshop.filter_templates,
            "templates": PROMPTS,
            "vocabulary": vocabulary,
            "seed": seed,
        }

    def problem(
        self, seed: int, vocabulary: Vocabulary = "full", *, with_gradnorm: bool = False
    ) -> Problem:
        """Return what methods are given."""
        workshop = self._workshop
        gradnorm = self._nouns("gradnorm", seed, vocabulary) if with_gradnorm else None
        names = [name.split(",")[0] for name in self._class_names]
        return Problem(
            visual=self._visual,
            semantic=self._semantic,
            n_clusters=self.n_clusters,
            nouns=workshop.encode(self._nouns("tac", seed, vocabulary), PROMPTS),
            candidates=workshop.candidates[self._allowed(vocabulary)],
            class_features=mean_prompt_features(workshop.encode(names, PROMPTS)),
            tau=workshop.encoder.tau,
            gradnorm_nouns=None if gradnorm is None else workshop.encode(gradnorm, PROMPTS),
        )

    def _encode(self, dataset: Dataset, part: Literal["train", "test"]) -> EncodedSource:
        workshop = self._workshop
        source = dataset.train if part == "train" else dataset.test
        keys = source_keys(source, workshop.output / "keys", workshop.progress)
        return encode_source(source, keys, workshop.encoder, workshop.store, workshop.progress)

    @cached_property
    def _visual(self) -> NDArray[np.float32]:
        return self._test.images.visual()

    @cached_property
    def _semantic(self) -> NDArray[np.float32]:
        return self._test.images.semantic()

    def _allowed(self, vocabulary: Vocabulary) -> NDArray[np.intp]:
        words = self._workshop.words
        if vocabulary == "full":
            return np.arange(len(words))
        return remove_class_names(words, self._class_names)

    def _nouns(
        self, method: Literal["tac", "gradnorm"], seed: int, vocabulary: Vocabulary
    ) -> list[str]:
        """Return the positive nouns; choosing them again would cluster all training images."""
        facts = {**self.facts(seed, vocabulary), "filter": method}
        path = self._workshop.output / "nouns" / f"{_digest(facts)}.json"
        if path.exists():
            words: list[str] = json.loads(path.read_text("utf-8"))["nouns"]
            return words
        allowed = self._allowed(vocabulary)
        semantic = self._semantic if self._train is None else self._train.images.semantic()
        chosen = positive_nouns(
            semantic,
            self._workshop.candidates[allowed],
            self.n_clusters,
            method=method,
            random_state=seed,
        )
        words = [self._workshop.words[allowed[i]] for i in chosen]
        write_whole_json(path, {"nouns": words, **facts})
        return words


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
