"""Clustering accuracy on folders of labelled photographs, all methods on the same features.

Run it with ``python benchmarks/quality.py FOLDER [FOLDER ...]``; each folder has one subfolder per
class. The number of clusters is the number of classes; labels are used for scores only. Visual
features are half-whitened, which suits graphs and not k-means, so the rivals have rows without.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, SpectralClustering

from _setting import print_result, setting
from nouncut import NTKSpectralClustering, encode_images, encode_nouns
from nouncut.compute.rows import unit_rows
from nouncut.models.choose import load_encoder
from nouncut.models.encoder import Encoder
from nouncut.paper.baselines.tac import text_counterparts
from nouncut.paper.scores import clustering_scores
from nouncut.words.filters import positive_nouns
from nouncut.words.nouns import load_nouns
from nouncut.words.prompts import PROMPTS

FILTERS = ("tac", "gradnorm")


class Photographs:
    """Features, classes and candidate nouns of one folder."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        images = encode_images(folder, encoder)
        self.name, self.encoder, self.images = folder.name, encoder, images
        self.visual, self.semantic = images.visual(), images.semantic()
        plain = encoder.visual(images.rows(np.arange(len(images.paths))))
        self.plain = plain - plain.mean(axis=0)
        self.classes = np.array([path.parent.name for path in images.paths])
        self.n_clusters = len(set(self.classes))
        self.words = [noun.word for noun in load_nouns()]
        self.candidates = encode_nouns(self.words, ["{}"], encoder)

    def nouns(self, method: Any, seed: int) -> list[str]:
        kept = positive_nouns(
            self.semantic, self.candidates, self.n_clusters, method=method, random_state=seed
        )
        return [self.words[i] for i in kept]


def methods(data: Photographs, seed: int) -> Iterator[tuple[str, Callable[[], NDArray[Any]]]]:
    """Yield every method by name, with the function that computes its labels."""
    k = data.n_clusters
    for title, rows in (("", unit_rows(data.visual)), (", not whitened", unit_rows(data.plain))):
        means = KMeans(k, n_init=20, random_state=seed)
        yield f"k-means{title}", partial(means.fit_predict, rows)
        rbf = SpectralClustering(k, gamma=1.0, random_state=seed)
        yield f"spectral, RBF (scikit-learn){title}", partial(rbf.fit_predict, rows)
    yield (
        "nouncut by looks alone",
        lambda: NTKSpectralClustering(k, random_state=seed, n_jobs=-1).fit_predict(data.visual),
    )
    for method in FILTERS:
        nouns = data.nouns(method, seed)
        prompts = encode_nouns(nouns, PROMPTS, data.encoder)
        if method == "tac":
            yield "TAC (k-means)", partial(tac, data, prompts, seed)
            yield (
                "nouncut (the default)",
                partial(ours, data, prompts, seed, semantic_weight="auto"),
            )
        for ensemble in ("weighted", "diffusion", "average", "prompt_mean"):
            title = f"nouncut, words at full weight, {method} nouns, {ensemble}"
            yield title, partial(ours, data, prompts, seed, ensemble=ensemble)


def ours(data: Photographs, prompts: list[NDArray[Any]], seed: int, **options: Any) -> NDArray[Any]:
    model = NTKSpectralClustering(
        data.n_clusters, tau="auto", random_state=seed, n_jobs=-1, **options
    )
    labels: NDArray[Any] = model.fit_predict(
        data.visual, noun_features=prompts, semantic_features=data.semantic
    )
    return labels


def tac(data: Photographs, prompts: list[NDArray[Any]], seed: int) -> NDArray[Any]:
    """Cluster images by their features beside those of their text counterparts."""
    nouns = unit_rows(np.mean(prompts, axis=0))
    counterparts = text_counterparts(unit_rows(data.semantic), nouns)
    both = np.hstack([unit_rows(data.visual), counterparts])
    labels: NDArray[Any] = KMeans(data.n_clusters, n_init=20, random_state=seed).fit_predict(both)
    return labels


def score(data: Photographs, seeds: int) -> list[dict[str, Any]]:
    found: dict[str, list[Any]] = {}
    for seed in range(seeds):
        for name, cluster in methods(data, seed):
            found.setdefault(name, []).append(clustering_scores(data.classes, cluster()))
    return [
        {
            "method": name,
            "ACC": round(100 * float(np.mean([score.acc for score in scores])), 1),
            "± ACC": round(100 * float(np.std([score.acc for score in scores])), 1),
            "NMI": round(100 * float(np.mean([score.nmi for score in scores])), 1),
            "ARI": round(100 * float(np.mean([score.ari for score in scores])), 1),
        }
        for name, scores in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--model", default="mini", help="what load_encoder takes (default: mini)")
    parser.add_argument("--seeds", type=int, default=5, help="runs per method (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    encoder = load_encoder(arguments.model).encoder
    result = setting("scikit-learn", "torch")
    for folder in arguments.folders:
        data = Photographs(folder, encoder)
        title = f"{data.name}: {len(data.classes)} images, {data.n_clusters} classes"
        result[f"{title}, {encoder.name}, mean of {arguments.seeds} seeds"] = score(
            data, arguments.seeds
        )
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
