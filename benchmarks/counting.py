"""How often the number of clusters is found, on synthetic data and folders of photographs.

Run it with ``python benchmarks/counting.py [FOLDER ...]``, each folder holding one sub-folder per
class. Labels are only used to judge the counts. The largest gap between eigenvalues is shown for
comparison.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from _setting import print_result, setting
from nouncut.compute.eigen import Eigenpairs, top_eigenpairs
from nouncut.compute.rows import unit_rows
from nouncut.method.count import count_clusters
from nouncut.method.graphs import choose_neighbors, normalized_mean, symmetric_graphs
from nouncut.method.kernel import noun_probabilities
from nouncut.method.labels import assign_labels
from nouncut.method.neighbors import kernel_neighbors
from nouncut.method.temperature import choose_tau
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

# Every third synthetic noun has no class: with a multiple of three, every third class would have no
# noun.
NUMBERS = (2, 4, 5, 8, 10, 14, 20, 28, 40, 50, 59)
SEPARATIONS = (0.25, 0.35, 0.45)
IMAGES_PER_CLASS = (25, 60)
FEWEST_IMAGES = 200
MAX_CLUSTERS = 100
PUBLISHED_TAU = 0.04
# The score was chosen on other synthetic sets than these.
FIRST_SEED = 100
# If even the right number gives other clusters than the classes, no count can be right.
CUT_ACCURACY = 0.8


def ensembled_graph(
    visual: NDArray[Any], semantic: NDArray[Any], prompts: list[NDArray[Any]], tau: float | None
) -> csr_array:
    """Return the graph in which the estimator counts clusters."""
    probabilities: list[NDArray[Any]] = []
    if prompts:
        tau = choose_tau(semantic, prompts) if tau is None else tau
        probabilities = noun_probabilities(semantic, prompts, tau)
    found = kernel_neighbors(visual, probabilities, choose_neighbors(len(visual)))
    return normalized_mean(symmetric_graphs(found))


def count(graph: csr_array, classes: NDArray[Any]) -> dict[str, Any]:
    """Count the clusters of one graph and judge the count."""
    truth = len(set(classes.tolist()))
    n_pairs = min(MAX_CLUSTERS, graph.shape[0] // 5)
    pairs: Eigenpairs = top_eigenpairs(graph, n_pairs, tol=1e-4, random_state=0)
    found = count_clusters(graph, max_clusters=n_pairs, eigenpairs=pairs)
    labels = assign_labels(pairs.vectors[:, :truth])
    return {
        "classes": truth,
        "found": found.n_clusters,
        "confidence": round(found.confidence, 2),
        "candidates": " ".join(str(number) for number, _ in found.candidates),
        "largest gap": 2 + int(np.argmax(-np.diff(pairs.values[1:]))),
        "ACC with the right number": clustering_scores(classes, labels).acc,
    }


def made_counts(seeds: int) -> Iterator[dict[str, Any]]:
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for k, separation, per_class in product(NUMBERS, SEPARATIONS, IMAGES_PER_CLASS):
            n_images = max(per_class * k, FEWEST_IMAGES)
            data = make_clip_like(n_images, k, separation=separation, random_state=seed)
            for nouns in (False, True):
                prompts = data.noun_features if nouns else []
                graph = ensembled_graph(data.features, data.features, prompts, PUBLISHED_TAU)
                about = {"nouns": nouns, "separation": separation, "per class": per_class}
                yield about | count(graph, data.labels)


def accuracy(rows: list[dict[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {"sets": len(rows)}
    truth = np.array([row["classes"] for row in rows])
    for name, column in (("ours", "found"), ("largest gap", "largest gap")):
        numbers = np.array([row[column] for row in rows])
        result[f"{name}: exact %"] = round(100 * float(np.mean(numbers == truth)), 1)
        within = np.abs(numbers - truth) <= 0.1 * truth
        result[f"{name}: within 10 %"] = round(100 * float(np.mean(within)), 1)
    return result


def summaries(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the accuracy by kind of data, and by confidence."""
    separable = [row for row in rows if row["ACC with the right number"] >= CUT_ACCURACY]
    kinds = [{"data": "all"} | accuracy(rows), {"data": "separable"} | accuracy(separable)]
    for nouns, separation, per_class in product((False, True), SEPARATIONS, IMAGES_PER_CLASS):
        about = {"nouns": nouns, "separation": separation, "per class": per_class}
        chosen = [row for row in rows if about.items() <= row.items()]
        title = f"{'nouns' if nouns else 'visual'}, separation {separation}, {per_class} per class"
        kinds.append({"data": title} | accuracy(chosen))
    bands = []
    for fifth in range(5):
        chosen = [row for row in rows if min(round(100 * row["confidence"]) // 20, 4) == fifth]
        if chosen:
            title = f"{fifth / 5:.1f} to {(fifth + 1) / 5:.1f}"
            bands.append({"confidence": title} | accuracy(chosen))
    return {
        f"Synthetic data ('separable': ACC >= {CUT_ACCURACY} with the right number)": kinds,
        "By confidence": bands,
    }


def photograph_counts(folder: Path, encoder: Any) -> Iterator[dict[str, Any]]:
    # Synthetic data need none of these packages.
    from nouncut import encode_nouns
    from nouncut.words.prompts import PROMPTS
    from quality import Photographs

    data = Photographs(folder, encoder)
    visual, semantic = unit_rows(data.visual), unit_rows(data.semantic)
    about = {"folder": data.name, "images": len(visual)}
    yield (
        about | {"nouns": "none"} | count(ensembled_graph(visual, semantic, [], None), data.classes)
    )
    # The filter needs a number of clusters, and must not know the right one.
    data.n_clusters = round((len(visual) / 2) ** 0.5)
    nouns = data.nouns("tac", seed=0)
    prompts = encode_nouns(nouns, PROMPTS, encoder)
    graph = ensembled_graph(visual, semantic, prompts, None)
    yield about | {"nouns": f"{len(nouns)} (tac)"} | count(graph, data.classes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders with a folder per class")
    parser.add_argument("--model", default="mini", help="what load_encoder takes (default: mini)")
    parser.add_argument("--seeds", type=int, default=2, help="synthetic sets per kind (default: 2)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = setting("scikit-learn")
    if arguments.seeds:
        result |= summaries(list(made_counts(arguments.seeds)))
    if arguments.folders:
        from nouncut.models.choose import load_encoder

        encoder = load_encoder(arguments.model).encoder
        result[f"Photographs, {encoder.name}"] = [
            row for folder in arguments.folders for row in photograph_counts(folder, encoder)
        ]
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
