"""How often suggested pairs of groups are one class, on folders of labelled photographs.

Run ``python benchmarks/suggestions.py FOLDER [FOLDER ...]``; each folder has one sub-folder per
class. Images are clustered by the product with the embedded model, into as many clusters as there
are classes, into half as many more, and into twice as many.

A pair is right if most images of both clusters are of the same class. "Possible" is the number of
right pairs among all; "right at 5" and "at 10" the share of right ones among the closest pairs,
whether they are suggested or not, at most the possible ones divided by 5 and 10. "Suggested" and
"right" count the pairs that `run.suggestions` returns. Other orders of all pairs, by mean
precision: "links" and "looks" are the two factors of the score; "meaning" is the cosine of mean
semantic features, "second choices" the geometric mean of the shares of images that have the other
cluster as second choice, "names" the similarity of names in WordNet's tree.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting
from hierarchy import Classes
from nouncut import Run, cluster_images
from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.method.division import relative_links
from nouncut.method.merge import cluster_edges
from nouncut.runs.suggestions import closeness, likeness
from nouncut.words.parent_names import cluster_senses
from nouncut.words.tree import ancestor_vectors

CLUSTERS_PER_CLASS = (1.0, 1.5, 2.0)

Matrix = NDArray[np.float64]


def orders(run: Run) -> Iterator[tuple[str, Matrix]]:
    """Yield ways to compare clusters."""
    labels = run.labels
    edges = cluster_edges(run.graph(), labels)
    yield "nouncut", closeness(run, labels, edges)
    yield "links", relative_links(edges)
    yield "looks", likeness(run, np.arange(len(labels)), labels)
    means = unit_rows(label_matrix(labels).T @ unit_rows(run.array("semantic")))
    yield "meaning", means @ means.T
    yield "second choices", second_choices(run)
    yield "names", name_similarity(run)


def second_choices(run: Run) -> Matrix:
    n = len(run.clusters)
    shares = np.zeros((n, n))
    second = run.assignments["second_cluster"].fill_null(-1).to_numpy()
    np.add.at(shares, (run.labels[second >= 0], second[second >= 0]), 1)
    shares /= np.bincount(run.labels)[:, None]
    return np.sqrt(shares * shares.T)


def name_similarity(run: Run) -> Matrix:
    similar = np.zeros((len(run.clusters),) * 2)
    rows = run.clusters.sort_by("cluster").to_pylist()
    senses = [cluster_senses(row["name"], row["gloss"] or "", guess=row["guess"]) for row in rows]
    vectors = {
        cluster: ancestor_vectors([synset.id for synset in sense.synsets])
        for cluster, sense in enumerate(senses)
        if sense.synsets
    }
    for first, own in vectors.items():
        for second, other in vectors.items():
            similar[first, second] = (own @ other.T).max()
    return similar


def mean_precision(scores: Matrix, same: NDArray[np.bool_]) -> float:
    """Return the mean over right pairs of the share of right pairs before and at each."""
    ranked = same[np.argsort(-scores, kind="stable")]
    hits = np.flatnonzero(ranked)
    return float(np.mean(np.arange(1, len(hits) + 1) / (hits + 1))) if len(hits) else float("nan")


def measure(folder: Path, factor: float, directory: Path) -> dict[str, Any]:
    n_classes = sum(path.is_dir() for path in folder.iterdir())
    run = cluster_images(folder, round(factor * n_classes), model="mini", output=directory)
    majority = Classes(run).majority
    above = np.triu_indices(len(majority), 1)
    same = majority[above[0]] == majority[above[1]]
    ways = {name: matrix[above] for name, matrix in orders(run)}
    ranked = same[np.argsort(-ways["nouncut"], kind="stable")]
    found = run.suggestions(None)
    right = sum(majority[one.clusters[0]] == majority[one.clusters[1]] for one in found)
    return {
        "set": folder.name,
        "clusters": len(majority),
        "possible": int(same.sum()),
        "right at 5": float(ranked[:5].mean()),
        "right at 10": float(ranked[:10].mean()),
        "suggested": len(found),
        "right": int(right),
    } | {f"order: {name}": mean_precision(scores, same) for name, scores in ways.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rows = [
            measure(folder, factor, Path(directory, f"{folder.name}-{factor}"))
            for folder in options.folders
            for factor in CLUSTERS_PER_CLASS
        ]
    print_result(setting("scipy") | {"Suggestions": rows}, options.json)


if __name__ == "__main__":
    main()
