"""A data set with one model's features, and the problems that methods solve on it."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.paper.baselines.problem import Problem
from nouncut.paper.bench.features import EncodedSource, encode_source, source_keys
from nouncut.paper.bench.noun_centers import filter_centers, kept_centers
from nouncut.paper.bench.output_folder import digest, write_json
from nouncut.paper.bench.setup import BenchSetup
from nouncut.paper.datasets.dataset import Dataset, ImageSource
from nouncut.paper.tables.paper_tables import Vocabulary
from nouncut.words.filters import mean_prompt_features, select_nouns
from nouncut.words.leakage import LeakWords, remove_class_names
from nouncut.words.prompts import PROMPTS

# Raise it whenever the same data set and model would make other problems.
PROBLEM_VERSION = 3


class EncodedDataset:
    """A data set with one model's features.

    Images are encoded when it is made; training images that it has in common with the `previous`
    data set are not looked up again. Nouns are chosen when a problem is asked for, and kept.
    """

    def __init__(
        self, dataset: Dataset, setup: BenchSetup, previous: EncodedDataset | None = None
    ) -> None:
        self.name, self.setup, self._dataset = dataset.name, setup, dataset
        self._test = self._encode(dataset.test)
        self._train = self._encode_train(previous)
        present, labels = np.unique(dataset.labels[self._test.kept], return_inverse=True)
        self.labels: NDArray[np.intp] = labels
        self.n_clusters = len(present)
        self.n_skipped = len(dataset.test) - len(labels)
        self._class_names = [dataset.class_names[i] for i in present]
        prompt_names = dataset.prompt_names or dataset.class_names
        self._class_prompts = [prompt_names[i] for i in present], dataset.templates

    def problem_facts(
        self, seed: int, vocabulary: Vocabulary = "full", prompt: int | None = None
    ) -> dict[str, Any]:
        """Return everything that decides a problem."""
        return {
            **self._noun_facts(seed, vocabulary, prompt),
            "dataset": self.name,
            "classes": self._class_names,
            "test": self._test_digest,
            "templates": PROMPTS,
            "neighbors": self.setup.neighbors,
        }

    def result_facts(
        self, method: str, seed: int, vocabulary: Vocabulary = "full", prompt: int | None = None
    ) -> dict[str, Any]:
        """Return everything that decides the result of a method."""
        facts = self.problem_facts(seed, vocabulary, prompt)
        own = {"method": method, "model_name": self.setup.model}
        return {**facts, **own, "class_prompts": digest(self._class_prompts)}

    def problem(
        self,
        seed: int,
        vocabulary: Vocabulary = "full",
        prompt: int | None = None,
        *,
        with_gradnorm: bool = False,
        with_train: bool = True,
    ) -> Problem:
        """Return the input of methods; `prompt` alone chooses the nouns, if it is given.

        `with_train` is for methods that train a head.
        """
        setup = self.setup
        chosen = self._nouns("tac", seed, vocabulary, prompt)
        gradnorm = self._nouns("gradnorm", seed, vocabulary, prompt) if with_gradnorm else None
        return Problem(
            visual=self._visual,
            semantic=self._semantic,
            n_clusters=self.n_clusters,
            nouns=setup.encode(chosen, PROMPTS),
            candidates=setup.candidates[self._allowed(vocabulary)],
            class_features=mean_prompt_features(setup.encode(*self._class_prompts)),
            tau=setup.encoder.tau,
            gradnorm_nouns=[] if gradnorm is None else setup.encode(gradnorm, PROMPTS),
            neighbors=setup.neighbors,
            train_visual=self._train_visual if with_train else None,
            train_semantic=self._train_semantic if with_train else None,
            dataset=self.name,
        )

    def _encode(self, source: ImageSource) -> EncodedSource:
        keys = source_keys(source, self.setup.output / "keys", self.setup.progress)
        return encode_source(source, keys, self.setup)

    def _encode_train(self, previous: EncodedDataset | None) -> EncodedSource:
        train = self._dataset.train
        if train is self._dataset.test:
            return self._test
        if previous is not None and previous._dataset.train is train:
            return previous._train
        return self._encode(train)

    @cached_property
    def _visual(self) -> NDArray[np.float32]:
        return self._test.images.visual()

    @cached_property
    def _semantic(self) -> NDArray[np.float32]:
        return self._test.images.semantic()

    @cached_property
    def _test_digest(self) -> str:
        return digest([self._test.images.hashes, self.labels.tolist()])

    @cached_property
    def _train_digest(self) -> str:
        return digest(self._train.images.hashes)

    @cached_property
    def _train_visual(self) -> NDArray[np.float32] | None:
        """Visual features of the training images in the view of the images to cluster."""
        if self._train is self._test:
            return None
        return self._train.images.visual(self._test.images.visual_view())

    @cached_property
    def _train_semantic(self) -> NDArray[np.float32] | None:
        return None if self._train is self._test else self._train.images.semantic()

    def _allowed(self, vocabulary: Vocabulary) -> slice | NDArray[np.intp]:
        """Return which words nouns are chosen from."""
        if vocabulary == "full":
            return slice(None)
        leak_words: LeakWords = "exact" if vocabulary == "without class names" else "related"
        return remove_class_names(self.setup.words, self._class_names, leak_words)

    def _filter_templates(self, prompt: int | None) -> tuple[str, ...]:
        """Return the prompts of the filter: a single one only where the filter has prompts."""
        if prompt is None or self.setup.filter_templates != PROMPTS:
            return self.setup.filter_templates
        return (PROMPTS[prompt - 1],)

    def _noun_facts(self, seed: int, vocabulary: Vocabulary, prompt: int | None) -> dict[str, Any]:
        """Return everything that decides the nouns; data sets may have the same."""
        return {
            "version": PROBLEM_VERSION,
            "train": self._train_digest,
            "n_clusters": self.n_clusters,
            "model": self.setup.encoder.fingerprint,
            "words": self.setup.words_digest,
            "filter_templates": self._filter_templates(prompt),
            "vocabulary": vocabulary,
            "removed": [] if vocabulary == "full" else self._class_names,
            "seed": seed,
        }

    def _nouns(
        self,
        method: Literal["tac", "gradnorm"],
        seed: int,
        vocabulary: Vocabulary,
        prompt: int | None,
    ) -> list[str]:
        """Return the positive nouns; they are kept, because choosing clusters all images."""
        n_images = len(self._train.images.paths)
        n_centers = filter_centers(method, self.name, n_images, self.n_clusters)
        facts = {
            **self._noun_facts(seed, vocabulary, prompt),
            "filter": method,
            "n_centers": n_centers,
        }
        path = self.setup.output / "nouns" / f"{digest(facts)}.json"
        if path.exists():
            kept: list[str] = json.loads(path.read_text("utf-8"))["nouns"]
            return kept
        allowed = self._allowed(vocabulary)
        nouns = self.setup.filter_features(self._filter_templates(prompt))[allowed]
        chosen = select_nouns(self._centers(n_centers, seed), nouns, method=method)
        words: list[str] = np.array(self.setup.words, dtype=object)[allowed][chosen].tolist()
        write_json(path, {"nouns": words, **facts})
        return words

    def _centers(self, n_centers: int, seed: int) -> NDArray[np.float32]:
        """Return the centres of a filter; all vocabularies and filters of one number share them."""
        fingerprint = self.setup.encoder.fingerprint
        facts = [PROBLEM_VERSION, self._train_digest, fingerprint, n_centers, seed]
        path = self.setup.output / "centers" / f"{digest(facts)}.npy"
        return kept_centers(path, self._train.images.semantic, n_centers, seed)
