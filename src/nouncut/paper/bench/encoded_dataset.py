"""A data set with one model's features, and the problems that methods solve on it."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.paper.baselines.problem import Problem
from nouncut.paper.bench.features import EncodedSource, encode_source, source_keys
from nouncut.paper.bench.output_folder import write_json
from nouncut.paper.bench.setup import BenchSetup
from nouncut.paper.datasets.dataset import Dataset, ImageSource
from nouncut.paper.tables.paper_tables import Vocabulary
from nouncut.words.filters import mean_prompt_features, positive_nouns
from nouncut.words.leakage import remove_class_names
from nouncut.words.prompts import PROMPTS

# Raise it whenever the same data set and model would make other problems.
PROBLEM_VERSION = 2


class EncodedDataset:
    """A data set with one model's features.

    Images are encoded when it is made. Nouns are chosen when a problem is asked for, and kept.
    """

    def __init__(self, dataset: Dataset, setup: BenchSetup) -> None:
        self.name, self.setup = dataset.name, setup
        self._train = None if dataset.train is dataset.test else self._encode(dataset.train)
        self._test = self._encode(dataset.test)
        present, labels = np.unique(dataset.labels[self._test.kept], return_inverse=True)
        self.labels: NDArray[np.intp] = labels
        self.n_clusters = len(present)
        self.n_skipped = len(dataset.test) - len(labels)
        self._class_names = [dataset.class_names[i] for i in present]

    def problem_facts(self, seed: int, vocabulary: Vocabulary = "full") -> dict[str, Any]:
        """Return everything that decides a problem."""
        train = self._train or self._test
        return {
            "version": PROBLEM_VERSION,
            "dataset": self.name,
            "classes": self._class_names,
            "test": _digest([self._test.images.hashes, self.labels.tolist()]),
            "train": _digest(train.images.hashes),
            "model": self.setup.encoder.fingerprint,
            "words": _digest(self.setup.words),
            "filter_templates": self.setup.filter_templates,
            "templates": PROMPTS,
            "vocabulary": vocabulary,
            "seed": seed,
        }

    def result_facts(
        self, method: str, seed: int, vocabulary: Vocabulary = "full"
    ) -> dict[str, Any]:
        """Return everything that decides the result of a method."""
        facts = self.problem_facts(seed, vocabulary)
        return {**facts, "method": method, "model_name": self.setup.model}

    def problem(
        self,
        seed: int,
        vocabulary: Vocabulary = "full",
        *,
        with_gradnorm: bool = False,
        with_train: bool = True,
    ) -> Problem:
        """Return the input of methods; `with_train` where any of them trains a head."""
        setup = self.setup
        gradnorm = self._nouns("gradnorm", seed, vocabulary) if with_gradnorm else None
        names = [name.split(",")[0] for name in self._class_names]
        return Problem(
            visual=self._visual,
            semantic=self._semantic,
            n_clusters=self.n_clusters,
            nouns=setup.encode(self._nouns("tac", seed, vocabulary), PROMPTS),
            candidates=setup.candidates[self._allowed(vocabulary)],
            class_features=mean_prompt_features(setup.encode(names, PROMPTS)),
            tau=setup.encoder.tau,
            gradnorm_nouns=[] if gradnorm is None else setup.encode(gradnorm, PROMPTS),
            train_visual=self._train_visual if with_train else None,
            train_semantic=self._train_semantic if with_train else None,
            dataset=self.name,
        )

    def _encode(self, source: ImageSource) -> EncodedSource:
        keys = source_keys(source, self.setup.output / "keys", self.setup.progress)
        return encode_source(source, keys, self.setup)

    @cached_property
    def _visual(self) -> NDArray[np.float32]:
        return self._test.images.visual()

    @cached_property
    def _semantic(self) -> NDArray[np.float32]:
        return self._test.images.semantic()

    @cached_property
    def _train_visual(self) -> NDArray[np.float32] | None:
        """Visual features of the training images in the view of the images to cluster."""
        if self._train is None:
            return None
        return self._train.images.visual(self._test.images.visual_view())

    @cached_property
    def _train_semantic(self) -> NDArray[np.float32] | None:
        return None if self._train is None else self._train.images.semantic()

    def _allowed(self, vocabulary: Vocabulary) -> NDArray[np.intp]:
        words = self.setup.words
        if vocabulary == "full":
            return np.arange(len(words))
        return remove_class_names(words, self._class_names)

    def _nouns(
        self, method: Literal["tac", "gradnorm"], seed: int, vocabulary: Vocabulary
    ) -> list[str]:
        """Return the positive nouns; they are kept, because choosing clusters all images."""
        facts = {**self.problem_facts(seed, vocabulary), "filter": method}
        path = self.setup.output / "nouns" / f"{_digest(facts)}.json"
        if path.exists():
            kept: list[str] = json.loads(path.read_text("utf-8"))["nouns"]
            return kept
        allowed = self._allowed(vocabulary)
        semantic = self._semantic if self._train is None else self._train.images.semantic()
        chosen = positive_nouns(
            semantic,
            self.setup.candidates[allowed],
            self.n_clusters,
            method=method,
            random_state=seed,
        )
        words = [self.setup.words[allowed[i]] for i in chosen]
        write_json(path, {"nouns": words, **facts})
        return words


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
