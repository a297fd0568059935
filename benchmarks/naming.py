"""Names of clusters on folders of labelled photographs, compared with the names of the classes.

Run ``python benchmarks/naming.py FOLDER [FOLDER ...]``; each folder has one sub-folder per class.
The number of clusters is the number of classes, and class names are used for scores only. A name
is good if it is the class, a synonym, or within two steps of it in WordNet's tree. The first table
shows names from all nouns. The summary compares vocabularies, and says how many names stay when a
tenth of the images is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting
from nouncut import NTKSpectralClustering, encode_images, encode_nouns
from nouncut.models.choose import load_encoder
from nouncut.models.encoder import Encoder
from nouncut.words.cluster_names import ClusterName, name_clusters
from nouncut.words.filters import positive_nouns
from nouncut.words.nouns import load_nouns
from nouncut.words.prompts import PROMPTS
from nouncut.words.wordnet import VISIBLE_LEXICONS, hypernym_steps, synsets_of

GOOD_STEPS = 2
N_DROPS = 5


class Clustered:
    """The images of a folder, their clusters, and the vocabulary for names."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        images = encode_images(folder, encoder)
        self.name, self.semantic = folder.name, images.semantic()
        self.classes = np.array([path.parent.name for path in images.paths])
        self.n_clusters = len(set(self.classes))
        self.words = [noun.word for noun in load_nouns()]
        self.features = encode_nouns(self.words, ["{}"], encoder)[0]
        self.positive = positive_nouns(
            self.semantic, self.features, self.n_clusters, random_state=0
        )
        nouns = [self.words[i] for i in self.positive]
        model = NTKSpectralClustering(self.n_clusters, tau="auto", random_state=0, n_jobs=-1)
        self.labels: NDArray[Any] = model.fit_predict(
            images.visual(),
            semantic_features=self.semantic,
            noun_features=encode_nouns(nouns, PROMPTS, encoder),
            nouns=nouns,
        )
        self.majorities = [self._majority(c) for c in range(int(self.labels.max()) + 1)]

    def _majority(self, cluster: int) -> tuple[str, float]:
        found, counts = np.unique(self.classes[self.labels == cluster], return_counts=True)
        return str(found[counts.argmax()]), float(counts.max() / counts.sum())

    def names(
        self, nouns: NDArray[np.intp], images: NDArray[Any] | slice = slice(None)
    ) -> list[ClusterName]:
        words = [self.words[i] for i in nouns]
        return name_clusters(
            self.labels[images], self.semantic[images], words, self.features[nouns]
        )

    def vocabularies(self) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """Yield sets of nouns to choose names from."""
        yield "all nouns", np.arange(len(self.words))
        visible = {noun.word for noun in load_nouns(lexicons=VISIBLE_LEXICONS)}
        yield "visible nouns", np.flatnonzero([word in visible for word in self.words])
        yield "positive nouns", self.positive


def known_word(class_name: str) -> str | None:
    """Return WordNet's word for a class: its name, its last word, or the singular of either."""
    name = class_name.replace("_", " ").replace("-", " ")
    last = name.split()[-1]
    tried = (name, last, name.removesuffix("s"), last.removesuffix("s"))
    return next((word for word in tried if synsets_of(word)), None)


def steps_to_class(class_name: str, name: str) -> int | None:
    word = known_word(class_name)
    return None if word is None else hypernym_steps(word, name)


def table(data: Clustered, names: Sequence[ClusterName]) -> list[dict[str, Any]]:
    rows = []
    for (class_name, share), name in zip(data.majorities, names, strict=True):
        steps = steps_to_class(class_name, name.name)
        rows.append(
            {
                "majority class": class_name,
                "share": round(share, 2),
                "name": name.name,
                "more words": ", ".join(name.more_words),
                "steps": "unknown" if steps is None else steps,
                "gloss": name.gloss,
            }
        )
    return rows


def summary(data: Clustered) -> list[dict[str, Any]]:
    return [_summary_row(data, title, nouns) for title, nouns in data.vocabularies()]


def _summary_row(data: Clustered, title: str, nouns: NDArray[np.intp]) -> dict[str, Any]:
    start = time.perf_counter()
    names = data.names(nouns)
    seconds = time.perf_counter() - start
    steps = [
        steps_to_class(class_name, name.name)
        for (class_name, _), name in zip(data.majorities, names, strict=True)
    ]
    kept = [_share_kept(data, names, nouns, seed) for seed in range(N_DROPS)]
    return {
        "vocabulary": title,
        "nouns": len(nouns),
        "clusters": len(names),
        "class or synonym": sum(step == 0 for step in steps),
        "within two steps": sum(step is not None and step <= GOOD_STEPS for step in steps),
        "unknown": sum(step is None for step in steps),
        "% kept without a tenth": round(100 * float(np.mean(kept)), 1),
        "seconds": round(seconds, 2),
    }


def _share_kept(
    data: Clustered, names: Sequence[ClusterName], nouns: NDArray[np.intp], seed: int
) -> float:
    left = np.random.default_rng(seed).random(len(data.labels)) > 0.1
    again = data.names(nouns, left)
    return sum(a.name == b.name for a, b in zip(names, again, strict=False)) / len(names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--model", default="mini", help="name for load_encoder (default: mini)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    encoder = load_encoder(arguments.model).encoder
    result = setting("scikit-learn", "torch")
    for folder in arguments.folders:
        data = Clustered(folder, encoder)
        title = f"{data.name}: {len(data.classes)} images, {data.n_clusters} classes"
        everything = np.arange(len(data.words))
        result[f"{title}, {encoder.name}"] = table(data, data.names(everything))
        result[f"{title}, vocabularies for names"] = summary(data)
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
