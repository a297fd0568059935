"""New images: `predict` against the label of the nearest fitted image.

Run it with ``python benchmarks/new_images.py``. Half of every synthetic set is fitted and the other
half predicted. Accuracy is that of the best matching of clusters and classes on the fitted half.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from _setting import print_result, setting
from nouncut import NTKSpectralClustering
from nouncut.paper.synthetic import make_clip_like

# Fitted images, clusters, neighbours, separation.
CASES: tuple[tuple[int, int, Any, float], ...] = (
    (600, 10, 200, 0.45),
    (1000, 100, 30, 0.45),
    (1200, 100, 30, 0.45),
    (400, 80, 30, 0.45),
    (600, 10, "auto", 0.45),
    (1000, 100, "auto", 0.45),
    (400, 80, "auto", 0.45),
    (1000, 10, "auto", 0.2),
    (3000, 10, "auto", 0.15),
    (3000, 60, "auto", 0.25),
    (10_000, 1000, 30, 0.45),
    (10_000, 1000, "auto", 0.45),
)
# Diffusion of more clusters than this takes minutes.
MOST_DIFFUSED = 500


def judge(
    n_images: int, n_clusters: int, n_neighbors: Any, separation: float, ensemble: Any
) -> dict[str, Any]:
    scores: dict[str, list[float]] = {}
    for seed in (0, 1):
        data = make_clip_like(2 * n_images, n_clusters, separation=separation, random_state=seed)
        known, new = data.features[:n_images], data.features[n_images:]
        model = NTKSpectralClustering(
            n_clusters, n_neighbors=n_neighbors, ensemble=ensemble, random_state=0, n_jobs=-1
        ).fit(known, noun_features=data.noun_features)
        classes = data.labels[:n_images]
        matched = match(model.labels_, classes, n_clusters)
        nearest = model.labels_[np.argmax(new @ known.T, axis=1)]
        # Other last digits than in the fit, so that no image is recognised by its bits.
        rounded = known.astype(np.float64) * 1.3
        for name, score in {
            "ACC of the fit": np.mean(matched[model.labels_] == classes),
            "fitted images keep their label": np.mean(model.predict(known) == model.labels_),
            "the same, rounded differently": np.mean(model.predict(rounded) == model.labels_),
            "ACC of new images": np.mean(matched[model.predict(new)] == data.labels[n_images:]),
            "ACC by nearest image": np.mean(matched[nearest] == data.labels[n_images:]),
        }.items():
            scores.setdefault(name, []).append(100 * float(score))
    about = {"images": n_images, "clusters": n_clusters, "neighbours": n_neighbors}
    about |= {"separation": separation, "ensemble": ensemble}
    return about | {name: round(float(np.mean(found)), 1) for name, found in scores.items()}


def match(labels: NDArray[Any], classes: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Return the class of every cluster, each class once."""
    counts = np.zeros((k, k))
    np.add.at(counts, (labels, classes), 1)
    return np.asarray(linear_sum_assignment(-counts)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most-images", type=int, default=20_000, help="leave larger sets out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows = [
        judge(*case, ensemble)
        for case in CASES
        if case[0] <= arguments.most_images
        for ensemble in ("weighted", "diffusion")
        if ensemble == "weighted" or case[1] <= MOST_DIFFUSED
    ]
    result = setting("scikit-learn") | {"New images, mean of two seeds": rows}
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
