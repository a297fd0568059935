"""The time of a noun filter's k-means, and what it would be on ImageNet's training images.

Features are made, 512 numbers per image. The time grows with the images and, for a fixed number of
images, along a line with the centres: exact searches take time in proportion to the centres, later
ones among near centres do not. The line through two measured numbers gives ImageNet's time, in
minutes of one core. scikit-learn's k-means (``--compare``, minutes) shows how good the centres are:
the mean cosine of an image with its centre.

Run it with ``python benchmarks/noun_centers.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from _setting import print_result, setting
from nouncut.paper.baselines.kmeans import mean_directions, spherical_centers
from nouncut.paper.baselines.nearest import nearest_centers
from nouncut.paper.synthetic import make_clip_like

IMAGENET = 1_281_167
IMAGENET_CENTERS = {"TAC": 4_271, "GradNorm": 2_000}


def measure(
    name: str,
    features: NDArray[np.float32],
    n_centers: int,
    find: Callable[[NDArray[np.float32], int], NDArray[np.float32]],
) -> dict[str, Any]:
    start, start_cores = time.perf_counter(), time.process_time()
    centers = find(features, n_centers)
    return {
        "k-means": name,
        "images": len(features),
        "centres": n_centers,
        "seconds": time.perf_counter() - start,
        "seconds of one core": time.process_time() - start_cores,
        "mean cosine": float(nearest_centers(features, centers).cosines.mean(dtype=np.float64)),
    }


def scikit_learn_centers(features: NDArray[np.float32], n_centers: int) -> NDArray[np.float32]:
    labels = KMeans(n_centers, n_init=1, random_state=0).fit_predict(features)
    return mean_directions(features, labels.astype(np.intp), n_centers)


def extrapolate(few: dict[str, Any], many: dict[str, Any], n_centers: int) -> float:
    """Return minutes of one core on ImageNet's training images."""
    seconds = [row["seconds of one core"] for row in (few, many)]
    slope = (seconds[1] - seconds[0]) / (many["centres"] - few["centres"])
    line = seconds[0] + slope * (n_centers - few["centres"])
    return float(line * IMAGENET / few["images"] / 60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--centers", type=int, nargs=2, default=[333, 1_333])
    parser.add_argument("--compare", action="store_true", help="with scikit-learn")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    features = make_clip_like(
        arguments.images, 1_000, n_nouns=1, n_prompts=1, separation=0.3, random_state=0
    ).features
    rows = [
        measure("ours", features, k, lambda images, k: spherical_centers(images, k, 0))
        for k in arguments.centers
    ]
    imagenet = [
        {"filter": name, "centres": k, "minutes of one core": extrapolate(rows[0], rows[1], k)}
        for name, k in IMAGENET_CENTERS.items()
    ]
    if arguments.compare:
        few = arguments.centers[0]
        rows.append(measure("scikit-learn", features, few, scikit_learn_centers))
    tables = {"Centres": rows, "ImageNet's 1,281,167 images, extrapolated": imagenet}
    print_result(setting("scikit-learn") | tables, arguments.json)


if __name__ == "__main__":
    main()
