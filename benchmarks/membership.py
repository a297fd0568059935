"""Calibration of confidences, and detection of unseen kinds of images.

Run it with ``python benchmarks/membership.py FOLDER [FOLDER ...]``, each folder holding one
sub-folder per class. Labels are only used for scores. Confidence is compared with the share of
images in the cluster of their class (clusters are matched one to one with classes). For unseen
kinds a fifth of the classes, and a fifth of the other images, are left out of the clustering.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from _setting import print_result, setting
from nouncut import NTKSpectralClustering, encode_nouns
from nouncut.method.familiarity import familiarity, least_familiarity
from nouncut.method.membership import cluster_membership, outliers
from nouncut.method.whitening import half_whitening
from nouncut.models.choose import load_encoder
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.encode import image_space
from nouncut.words.prompts import PROMPTS
from quality import Photographs

N_BANDS = 10
HIDDEN_SHARE = 0.2
SEPARATIONS = (0.25, 0.3, 0.4)


def is_right(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which images lie in the cluster that stands for their class."""
    _, numbers = np.unique(classes, return_inverse=True)
    counts = np.zeros((labels.max() + 1, numbers.max() + 1))
    np.add.at(counts, (labels, numbers), 1)
    class_of = dict(zip(*linear_sum_assignment(-counts), strict=True))
    return np.array([class_of.get(c) == n for c, n in zip(labels, numbers, strict=True)])


def calibration(classes: NDArray[Any], model: NTKSpectralClustering) -> dict[str, Any]:
    right = is_right(classes, model.labels_)
    confidence = cluster_membership(
        model.embedding_,
        model.cluster_centers_,
        labels=model.labels_,
        temperature=model.membership_temperature_,
    ).confidence
    alone = outliers(model.graph_, model.labels_)
    band = np.minimum((confidence * N_BANDS).astype(int), N_BANDS - 1)
    gaps = [
        np.mean(band == b) * abs(confidence[band == b].mean() - right[band == b].mean())
        for b in np.unique(band)
    ]
    doubtful = confidence < np.median(confidence)
    return {
        "images": len(right),
        "right %": round(100 * float(right.mean()), 1),
        "mean confidence %": round(100 * float(confidence.mean()), 1),
        "expected calibration error %": round(100 * float(np.sum(gaps)), 1),
        "right among the less sure half %": round(100 * float(right[doubtful].mean()), 1),
        "right among the surer half %": round(100 * float(right[~doubtful].mean()), 1),
        "outliers": len(alone),
        "right among outliers %": round(100 * float(right[alone].mean()), 1)
        if len(alone)
        else None,
    }


def made_rows() -> list[dict[str, Any]]:
    rows = []
    for separation in SEPARATIONS:
        data = make_clip_like(1000, 10, separation=separation, random_state=0)
        model = NTKSpectralClustering(10, random_state=0, n_jobs=-1)
        model.fit(data.features, noun_features=data.noun_features)
        rows.append({"data": f"made, separation {separation}"} | calibration(data.labels, model))
    return rows


def photograph_row(data: Photographs) -> dict[str, Any]:
    model = NTKSpectralClustering(
        data.n_clusters, tau="auto", semantic_weight="auto", random_state=0, n_jobs=-1
    )
    model.fit(
        data.visual,
        semantic_features=data.semantic,
        noun_features=encode_nouns(data.nouns("tac", seed=0), PROMPTS, data.encoder),
    )
    return {"data": data.name} | calibration(data.classes, model)


def unseen_row(data: Photographs, raw: NDArray[Any], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    kinds = np.unique(data.classes)
    hidden = rng.choice(kinds, max(1, round(HIDDEN_SHARE * len(kinds))), replace=False)
    is_hidden = np.isin(data.classes, hidden)
    is_new = rng.random(len(raw)) < HIDDEN_SHARE
    view = half_whitening(raw[~is_hidden & ~is_new])

    def rows_of(images: NDArray[np.bool_]) -> NDArray[np.float32]:
        return view.cosine_rows(view(raw[images]), view.lengths(raw[images]))

    features = rows_of(~is_hidden & ~is_new)
    least = least_familiarity(features, n_threads=2)

    def flagged(images: NDArray[np.bool_]) -> float:
        found = familiarity(features, rows_of(images), n_threads=2) < least
        return round(100 * float(found.mean()), 1)

    return {
        "folder": data.name,
        "kinds hidden": ", ".join(map(str, hidden)),
        "marked, unseen kinds %": flagged(is_hidden),
        "marked, known kinds %": flagged(is_new & ~is_hidden),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders with a folder per class")
    parser.add_argument("--model", default="mini", help="what load_encoder takes (default: mini)")
    parser.add_argument("--seeds", type=int, default=3, help="choices of hidden kinds (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = setting("scikit-learn")
    rows, unseen = made_rows(), []
    if arguments.folders:
        encoder = load_encoder(arguments.model).encoder
        for folder in arguments.folders:
            data = Photographs(folder, encoder)
            rows.append(photograph_row(data))
            stored = data.images.store.read(image_space(encoder), data.images.hashes or ())
            raw = encoder.visual(stored)
            unseen += [unseen_row(data, raw, seed) for seed in range(arguments.seeds)]
    result["Confidence"] = rows
    result["Unseen kinds"] = unseen
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
