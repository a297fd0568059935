"""Groups of groups on folders of labelled photographs, compared with classes and WordNet's tree.

Run ``python benchmarks/hierarchy.py FOLDER [FOLDER ...]``; each folder has one sub-folder per
class. Images are clustered by the product with the embedded model, into as many clusters as there
are classes and into three times as many.

"Purity" is the dendrogram purity: the expected share of a class in the smallest group that holds
two random images of that class. "Triplets" is the share of three clusters of different classes of
which the two that WordNet puts closest are joined first; a random tree has a third. Only triplets
count whose closest pair shares clearly more in WordNet (a cosine of 0.05) than the other pairs. The
baselines are scikit-learn's average linkage on the mean features of the clusters, and random trees.

"Right" parents have a name in WordNet that is at or above the most frequent class of every cluster
below; "wrong" ones have another name; lists have none.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering

from _setting import print_result, setting
from naming import class_senses
from nouncut import Run, cluster_images
from nouncut.compute.rows import unit_rows
from nouncut.method.hierarchy import join_clusters
from nouncut.runs.tree import TreeNode
from nouncut.words.tree import ancestor_vectors, information_bits
from nouncut.words.wordnet import broader_synsets, synset_rows

PER_CLASS = (1, 3)
N_RANDOM = 20
CLEARLY = 0.05

# Pairs of numbers: of clusters below the number of clusters, of earlier joins above.
Joins = NDArray[np.intp]


class Classes:
    """The classes of a run's images, counted by cluster."""

    def __init__(self, run: Run) -> None:
        names, of_image = np.unique([path.parent.name for path in run.paths()], return_inverse=True)
        self.names = [str(name) for name in names]
        self.counts = np.zeros((len(run.clusters), len(names)))
        np.add.at(self.counts, (run.labels, of_image), 1)
        self.majority = self.counts.argmax(axis=1)


def trees(run: Run, rng: np.random.Generator) -> Iterator[tuple[str, list[Joins]]]:
    """Yield kinds of trees, and one or more of each."""
    labels, n = run.labels, len(run.clusters)
    ours = join_clusters(run.graph(), labels, run.array("semantic"))
    yield "nouncut", [ours.joins[:, :2].astype(np.intp)]
    yield "nouncut, graph alone", [join_clusters(run.graph(), labels).joins[:, :2].astype(np.intp)]
    for title in ("features", "semantic"):
        rows = unit_rows(run.array(title))
        means = np.array([rows[labels == cluster].mean(axis=0) for cluster in range(n)])
        linkage = AgglomerativeClustering(
            None, linkage="average", metric="cosine", distance_threshold=0
        )
        yield f"average linkage, mean {title}", [linkage.fit(means).children_]
    yield "random", [random_joins(n, rng) for _ in range(N_RANDOM)]


def random_joins(n: int, rng: np.random.Generator) -> Joins:
    left, joins = list(range(n)), []
    for number in range(n, 2 * n - 1):
        pair = rng.choice(len(left), 2, replace=False)
        joins.append([left[i] for i in pair])
        left = [one for i, one in enumerate(left) if i not in pair] + [number]
    return np.array(joins)


def first_joins(joins: Joins) -> tuple[NDArray[np.intp], list[list[int]]]:
    """Return the join (n, n) that first unites two clusters, and the clusters of every join."""
    n = len(joins) + 1
    members = [[cluster] for cluster in range(n)]
    first = np.full((n, n), -1)
    for number, (a, b) in enumerate(joins):
        for x in members[a]:
            first[x, members[b]] = first[members[b], x] = number
        members.append(members[a] + members[b])
    return first, members[n:]


def dendrogram_purity(joins: Joins, counts: NDArray[Any]) -> float:
    first, members = first_joins(joins)
    sums = np.array([counts[clusters].sum(axis=0) for clusters in members])
    shares = sums / sums.sum(axis=1, keepdims=True)
    own = counts / counts.sum(axis=1, keepdims=True)
    total, n_pairs = 0.0, 0.0
    for of_class, joined, alone in zip(counts.T, shares.T, own.T, strict=True):
        pairs = np.outer(of_class, of_class)
        np.fill_diagonal(pairs, of_class * (of_class - 1))
        purity = joined[first]
        np.fill_diagonal(purity, alone)
        total, n_pairs = total + (pairs * purity).sum(), n_pairs + pairs.sum()
    return float(total / n_pairs)


def triplets(classes: Classes) -> list[tuple[int, int, int]]:
    """Return clusters of three classes; WordNet puts the first two closest."""
    known = [i for i, name in enumerate(classes.names) if class_senses(name)]
    vectors = ancestor_vectors([class_senses(classes.names[i])[0].id for i in known])
    near = np.zeros((len(classes.names),) * 2)
    near[np.ix_(known, known)] = (vectors @ vectors.T).toarray()
    clusters = [c for c, name in enumerate(classes.majority) if name in known]
    found = []
    for three in combinations(clusters, 3):
        a, b, c = three
        i, j, k = classes.majority[list(three)]
        if len({i, j, k}) == 3:
            ranked = sorted(
                [(near[i, j], (a, b, c)), (near[i, k], (a, c, b)), (near[j, k], (b, c, a))]
            )
            if ranked[2][0] - ranked[1][0] > CLEARLY:
                found.append(ranked[2][1])
    return found


def share_joined_first(joins: Joins, three: list[tuple[int, int, int]]) -> float:
    a, b, c = np.array(three).T
    first, _ = first_joins(joins)
    return float(np.mean(first[a, b] < np.minimum(first[a, c], first[b, c])))


def nodes(tree: TreeNode) -> Iterator[TreeNode]:
    for child in tree.children:
        if child.children:
            yield child
            yield from nodes(child)


def parents(run: Run, classes: Classes) -> dict[str, Any]:
    found = list(nodes(run.tree))
    verdicts = [verdict(node, classes) for node in found]
    right = [
        node.synset
        for node, one in zip(found, verdicts, strict=True)
        if node.synset and one == "right"
    ]
    bits = information_bits()[synset_rows(right)]
    return {
        "clusters": len(run.clusters),
        "levels": run.tree.depth - 1,
        "parents": len(found),
        **{one: verdicts.count(one) for one in ("right", "wrong", "list")},
        "bits of right names": round(float(np.mean(bits)), 1) if right else None,
    }


def verdict(node: TreeNode, classes: Classes) -> str:
    if node.synset is None:
        return "list"
    names = {classes.names[classes.majority[cluster]] for cluster in node.clusters}
    return (
        "right" if all(node.synset in broader_synsets(class_senses(n)) for n in names) else "wrong"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = setting("scikit-learn")
    for folder in arguments.folders:
        n_classes = len({path.parent for path in folder.glob("*/*")})
        shapes, names = [], []
        for per_class in PER_CLASS:
            with tempfile.TemporaryDirectory() as place:
                output = Path(place, "run")
                run = cluster_images(folder, per_class * n_classes, model="mini", output=output)
                classes = Classes(run)
                three = triplets(classes)
                for title, found in trees(run, np.random.default_rng(0)):
                    purity = [dendrogram_purity(joins, classes.counts) for joins in found]
                    first = [share_joined_first(joins, three) for joins in found]
                    shapes.append(
                        {
                            "clusters": len(run.clusters),
                            "tree": title,
                            "% purity": round(100 * float(np.mean(purity)), 1),
                            "% triplets": round(100 * float(np.mean(first)), 1),
                            "n triplets": len(three),
                        }
                    )
                names.append(parents(run, classes))
        result[f"{folder.name}: trees"] = shapes
        result[f"{folder.name}: names of parents"] = names
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
