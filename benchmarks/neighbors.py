"""How many neighbours every image should keep, by the number of images per cluster.

Run it with ``python benchmarks/neighbors.py [FOLDER ...]``: synthetic sets, and folders of
photographs with one sub-folder per class. The number of clusters is given.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting
from nouncut import NTKSpectralClustering
from nouncut.method.graphs import choose_neighbors
from nouncut.models.choose import load_encoder
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

NEIGHBORS = (2, 3, 5, 7, 10, 15, 20, 30, 50)
PER_CLUSTER = (3, 5, 10, 20, 50, 150)
IMAGES = (60, 200, 600)
SEPARATIONS = (0.2, 0.3, 0.45)


def accuracy(
    n_neighbors: Any, features: NDArray[Any], classes: NDArray[Any], **fit: Any
) -> float | None:
    """Return the accuracy in per cent; None with more neighbours than images."""
    if n_neighbors != "auto" and n_neighbors >= len(features):
        return None
    model = NTKSpectralClustering(
        len(set(classes.tolist())), tau="auto", n_neighbors=n_neighbors, random_state=0, n_jobs=-1
    )
    labels = model.fit_predict(features, **fit)
    return 100 * clustering_scores(classes, labels).acc


def row(sets: list[tuple[NDArray[Any], NDArray[Any], dict[str, Any]]]) -> dict[str, Any]:
    """Return the mean accuracy of some sets, by the number of neighbours."""
    found: dict[str, Any] = {}
    for q in (*NEIGHBORS, "auto"):
        scores = [accuracy(q, features, classes, **fit) for features, classes, fit in sets]
        known = [score for score in scores if score is not None]
        found[str(q)] = round(float(np.mean(known)), 1) if len(known) == len(sets) else "-"
    return found


def made_rows() -> list[dict[str, Any]]:
    rows = []
    for per_cluster in PER_CLUSTER:
        for n_images in IMAGES:
            n_clusters = n_images // per_cluster
            if n_clusters < 2:
                continue
            sets = []
            for separation in SEPARATIONS:
                data = make_clip_like(
                    n_images, n_clusters, n_prompts=2, separation=separation, random_state=0
                )
                sets.append((data.features, data.labels, {"noun_features": data.noun_features}))
            numbers = {"per cluster": per_cluster, "images": n_images}
            rows.append(numbers | {"chosen": choose_neighbors(n_images, n_clusters)} | row(sets))
    return rows


def photograph_rows(folders: list[Path]) -> list[dict[str, Any]]:
    from nouncut import encode_nouns
    from nouncut.words.prompts import PROMPTS
    from quality import Photographs

    encoder = load_encoder("mini").encoder
    rows = []
    for folder in folders:
        data = Photographs(folder, encoder)
        prompts = encode_nouns(data.nouns("tac", 0), PROMPTS, encoder)
        words = {"noun_features": prompts, "semantic_features": data.semantic}
        for name, fit in (("looks", {}), ("with nouns", words)):
            chosen = choose_neighbors(len(data.classes), data.n_clusters)
            about = {"photographs": data.name, "compared by": name, "chosen": chosen}
            rows.append(about | row([(data.visual, data.classes, fit)]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders with a folder per class")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = setting("scikit-learn")
    result["ACC by neighbours, synthetic sets (mean of three separations)"] = made_rows()
    if arguments.folders:
        result["ACC by neighbours, photographs"] = photograph_rows(arguments.folders)
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
