"""How often the number of clusters is found, on synthetic data and folders of photographs.

Run it with ``python benchmarks/counting.py [FOLDER ...]``, each folder holding one sub-folder per
class. Labels are only used to judge. Photographs are also counted in random subsets of their
classes, of even and uneven sizes. EVoC and UMAP + HDBSCAN, at their defaults, are compared if the
packages evoc, umap-learn and scikit-learn are installed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from _setting import print_result, setting
from nouncut import NTKSpectralClustering
from nouncut.compute.eigen import top_eigenpairs
from nouncut.compute.rows import unit_rows
from nouncut.method.graphs import choose_neighbors, normalized_mean, symmetric_graphs
from nouncut.method.labels import assign_labels
from nouncut.method.neighbors import kernel_neighbors
from nouncut.paper.synthetic import make_clip_like

NUMBERS = (2, 4, 8, 14, 24, 40, 80, 140, 200)
SEPARATIONS = (0.3, 0.4)
IMAGES_PER_CLASS = 20
FEWEST_IMAGES = 120
# The constants of the count were chosen on other synthetic sets than these.
FIRST_SEED = 100
MAX_CLUSTERS = 100
SUBSETS = (3, 6, 12, 24)
BANDS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 1.01))


class Labelled(NamedTuple):
    """A set of images with known classes."""

    name: str
    kind: str
    features: NDArray[Any]
    classes: NDArray[Any]


def uneven(classes: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    """Keep a random share of every class, at least six images."""
    kept = []
    for name in np.unique(classes):
        rows = np.flatnonzero(classes == name)
        kept.append(rows[: max(6, int(len(rows) * rng.beta(0.7, 1.0)))])
    return np.concatenate(kept)


def made_sets(first: int, seeds: int) -> Iterator[Labelled]:
    for seed in range(first, first + seeds):
        rng = np.random.default_rng(seed)
        for k in NUMBERS:
            for separation in SEPARATIONS:
                n_images = max(IMAGES_PER_CLASS * k, FEWEST_IMAGES)
                data = make_clip_like(
                    n_images, k, n_nouns=3, n_prompts=1, separation=separation, random_state=seed
                )
                name = f"{k} classes, separation {separation}"
                yield Labelled(name, "made, even", data.features, data.labels)
                rows = uneven(data.labels, rng)
                yield Labelled(name, "made, uneven", data.features[rows], data.labels[rows])


def photograph_sets(name: str, visual: NDArray[Any], classes: NDArray[Any]) -> Iterator[Labelled]:
    yield Labelled(name, "photographs", visual, classes)
    rng = np.random.default_rng(0)
    kinds = np.unique(classes)
    for size in SUBSETS:
        if size < len(kinds):
            rows = np.flatnonzero(np.isin(classes, rng.choice(kinds, size, replace=False)))
            yield Labelled(f"{size} of {name}", "subsets", visual[rows], classes[rows])
    rows = uneven(classes, rng)
    yield Labelled(f"{name}, uneven", "subsets", visual[rows], classes[rows])


def ours(features: NDArray[Any]) -> tuple[NDArray[Any], float]:
    model = NTKSpectralClustering("auto", random_state=0, n_jobs=-1).fit(features)
    assert model.cluster_count_ is not None
    return model.labels_, model.cluster_count_.confidence


def largest_gap(features: NDArray[Any]) -> NDArray[Any]:
    found = kernel_neighbors(unit_rows(features), [], choose_neighbors(len(features)))
    graph = normalized_mean(symmetric_graphs(found))
    pairs = top_eigenpairs(graph, min(MAX_CLUSTERS, len(features) // 5), tol=1e-4, random_state=0)
    k = 2 + int(np.argmax(-np.diff(pairs.values[1:])))
    return assign_labels(pairs.vectors[:, :k])


def best_silhouette(features: NDArray[Any]) -> NDArray[Any]:
    rows = unit_rows(features)
    numbers = np.unique(np.geomspace(2, min(256, len(rows) // 5), 16).astype(int))
    cuts = [KMeans(int(k), n_init=1, random_state=0).fit_predict(rows) for k in numbers]
    return max(cuts, key=lambda labels: silhouette_score(rows, labels, metric="cosine"))


def evoc_labels(features: NDArray[Any]) -> NDArray[Any]:
    from evoc import EVoC

    return np.asarray(EVoC().fit_predict(np.ascontiguousarray(features, dtype=np.float32)))


def umap_hdbscan(features: NDArray[Any]) -> NDArray[Any]:
    from umap import UMAP

    flat = UMAP(random_state=0, metric="cosine").fit_transform(features)
    return np.asarray(HDBSCAN(copy=True).fit_predict(flat))


def other_methods() -> dict[str, Callable[[NDArray[Any]], NDArray[Any]]]:
    methods: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
        "largest gap": largest_gap,
        "silhouette": best_silhouette,
    }
    rivals = {"EVoC": ("evoc", evoc_labels), "UMAP + HDBSCAN": ("umap", umap_hdbscan)}
    for name, (package, method) in rivals.items():
        try:
            __import__(package)
        except ImportError:
            print(f"{name} is left out: {package} is not installed.")
        else:
            methods[name] = method
    return methods


def judge(data: Labelled, others: dict[str, Any]) -> dict[str, Any]:
    labels, confidence = ours(data.features)
    row: dict[str, Any] = {"set": data.name, "kind": data.kind, "confidence": round(confidence, 2)}
    row["right"] = len(set(data.classes.tolist()))
    for name, method in {"ours": None, **others}.items():
        found = labels if method is None else method(data.features)
        row[name] = len(set(found.tolist()) - {-1})
        row[f"{name}, ARI"] = round(100 * float(adjusted_rand_score(data.classes, found)), 1)
    return row


def summary(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return the median error of log2 of the number, and the mean ARI, by kind of set."""
    result = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        chosen = [row for row in rows if row["kind"] == kind]
        line: dict[str, Any] = {"kind": kind, "sets": len(chosen)}
        for name in names:
            errors = [abs(np.log2(max(row[name], 1) / row["right"])) for row in chosen]
            line[f"{name}: error"] = round(float(np.median(errors)), 2)
            line[f"{name}: ARI"] = round(float(np.mean([row[f"{name}, ARI"] for row in chosen])), 1)
        result.append(line)
    return result


def calibration(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how often the number is within a tenth of the right one, by confidence."""
    bands = []
    for low, high in BANDS:
        chosen = [row for row in rows if low <= row["confidence"] < high]
        if chosen:
            right = [abs(row["ours"] - row["right"]) <= 0.1 * row["right"] for row in chosen]
            claimed = float(np.mean([row["confidence"] for row in chosen]))
            bands.append(
                {
                    "confidence": f"{low:.1f} to {min(high, 1):.1f}",
                    "sets": len(chosen),
                    "claimed %": round(100 * claimed),
                    "within a tenth %": round(100 * float(np.mean(right))),
                }
            )
    return bands


def photographs(folders: list[Path], model: str) -> Iterator[Labelled]:
    # Synthetic data need none of these packages.
    from nouncut.models.choose import load_encoder
    from quality import Photographs

    encoder = load_encoder(model).encoder
    for folder in folders:
        data = Photographs(folder, encoder)
        yield from photograph_sets(data.name, data.visual, data.classes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders with a folder per class")
    parser.add_argument("--model", default="mini", help="what load_encoder takes (default: mini)")
    parser.add_argument("--seeds", type=int, default=1, help="synthetic sets per kind (default: 1)")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="their first seed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    others = other_methods()
    sets = [
        *made_sets(arguments.first_seed, arguments.seeds),
        *photographs(arguments.folders, arguments.model),
    ]
    rows = [judge(data, others) for data in sets]
    result = setting("scikit-learn")
    result["Found numbers and ARI"] = [row for row in rows if row["kind"] == "photographs"]
    result["Median error of log2(number), and mean ARI"] = summary(rows, ["ours", *others])
    result["Calibration"] = calibration(rows)
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
