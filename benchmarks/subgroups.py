"""Whether groups fall apart that should, and stay whole that should, on labelled photographs.

Run ``python benchmarks/subgroups.py FOLDER [FOLDER ...]``; each folder has one sub-folder per
class. Images are clustered by the product with the embedded model, into as many clusters as there
are classes; the limit for parts of a group comes from these clusters.

Groups are then made of the labels: every class alone should stay whole; two classes should fall
apart, both any two and every class with the one that looks most like it. "Like the labels" is the
adjusted Rand index of the parts and the two classes, 0 for a group that stays whole. Computed
clusters of which at least 90 % are one class ("pure clusters") should stay whole too.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from _setting import print_result, setting
from nouncut import Run, cluster_images
from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.method.division import divide

ANY_TWO = 60
PURE = 0.9


def groups(
    run: Run, classes: NDArray[np.intp], rng: np.random.Generator
) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield kinds of groups and their images."""
    n_classes = int(classes.max()) + 1
    for one in range(n_classes):
        yield "a class", np.flatnonzero(classes == one)
    pairs = np.argwhere(np.triu(np.ones((n_classes, n_classes)), 1))
    for pair in rng.permutation(pairs)[:ANY_TWO]:
        yield "any two classes", np.flatnonzero(np.isin(classes, pair))
    means = unit_rows(label_matrix(classes).T @ unit_rows(run.array("features")))
    alike = means @ means.T
    np.fill_diagonal(alike, -1)
    for one, other in enumerate(alike.argmax(axis=1)):
        yield "two alike classes", np.flatnonzero(np.isin(classes, [one, other]))
    for cluster in range(len(run.clusters)):
        rows = np.flatnonzero(run.labels == cluster)
        if np.bincount(classes[rows]).max() >= PURE * len(rows):
            yield "pure clusters", rows


def measure(folder: Path, directory: Path) -> Iterator[dict[str, Any]]:
    n_classes = sum(path.is_dir() for path in folder.iterdir())
    run = cluster_images(folder, n_classes, model="mini", output=directory)
    graph = run.graph()
    classes = np.unique([path.parent.name for path in run.paths()], return_inverse=True)[1]
    found: dict[str, list[tuple[bool, float]]] = {}
    for kind, rows in groups(run, classes, np.random.default_rng(0)):
        parts = divide(graph[rows][:, rows], run.usual_link)
        index = adjusted_rand_score(classes[rows], parts)
        found.setdefault(kind, []).append((bool(parts.max()), index))
    for kind, results in found.items():
        apart, agreement = np.mean(results, axis=0)
        should = "two" in kind
        yield {
            "set": folder.name,
            "groups": kind,
            "number": len(results),
            "should": "fall apart" if should else "stay whole",
            "do": float(apart if should else 1 - apart),
            "like the labels": float(agreement) if should else "",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rows = [
            row
            for folder in options.folders
            for row in measure(folder, Path(directory, folder.name))
        ]
    print_result(setting("scipy") | {"Groups that fall apart": rows}, options.json)


if __name__ == "__main__":
    main()
