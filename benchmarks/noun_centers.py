"""The time of a noun filter's k-means, and what it would be on ImageNet's training images.

Features are made, 512 numbers per image, with one centre per 300 images as in TAC's rule. An
iteration takes time in proportion to images times centres; the number of iterations hardly
depends on them. scikit-learn's k-means shows how close one start in growing samples comes to it:
the mean cosine of an image with its centre.

Run it with ``python benchmarks/noun_centers.py``; ``--compare`` runs scikit-learn on the first size.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from _setting import print_result, setting
from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines.kmeans import mean_directions, spherical_centers
from nouncut.paper.baselines.nearest import nearest_centers
from nouncut.paper.synthetic import make_clip_like
from nouncut.words.filters import count_centers

IMAGENET = 1_281_167
# TAC's and GradNorm's centres.
IMAGENET_CENTERS = {"ImageNet, TAC (min)": 4_271, "ImageNet, GradNorm (min)": 2_000}


def measure(n_images: int, compare: bool) -> dict[str, Any]:
    features = make_clip_like(
        n_images, 100, n_nouns=1, n_prompts=1, separation=0.3, random_state=0
    ).features
    n_centers = count_centers(n_images, 100)
    start = time.perf_counter()
    centers = spherical_centers(features, n_centers, 0)
    seconds = time.perf_counter() - start
    share = IMAGENET / (n_images * n_centers)
    row = {
        "images": n_images,
        "centres": n_centers,
        "seconds": seconds,
        "mean cosine": mean_cosine(features, centers),
        **{name: seconds * share * k / 60 for name, k in IMAGENET_CENTERS.items()},
    }
    if compare:
        start = time.perf_counter()
        labels = KMeans(n_centers, n_init=1, random_state=0).fit_predict(features)
        row["scikit-learn (s)"] = time.perf_counter() - start
        own = mean_directions(features, labels.astype(np.intp), n_centers)
        row["its mean cosine"] = mean_cosine(features, own)
    return row


def mean_cosine(features: NDArray[np.float32], centers: NDArray[np.float32]) -> float:
    return float(nearest_centers(features, unit_rows(centers)).cosines.mean(dtype=np.float64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, nargs="+", default=[50_000, 100_000])
    parser.add_argument("--compare", action="store_true", help="with scikit-learn")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    first = [measure(arguments.images[0], True)] if arguments.compare else []
    rest = [measure(n, False) for n in arguments.images[len(first) :]]
    tables = {"Against scikit-learn": first, "Centres of a noun filter": rest}
    result = setting("scikit-learn") | {name: rows for name, rows in tables.items() if rows}
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
