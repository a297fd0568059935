"""Half-whitening of the embedded model's features: how many components, and which power.

Run ``python benchmarks/whitening.py FOLDER [FOLDER ...]``; each folder has one sub-folder per
class. Many collections are made from them: random subsets of one folder's classes, and of the
classes of all folders together. Each is clustered by looks alone, the number of clusters given.
Power 0 only centres the features, power 1 whitens them. The last table is made data as CLIP sees
them, whose features the paper compares as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting
from nouncut import NTKSpectralClustering, encode_images
from nouncut.models.mini import MiniEncoder
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.encode import image_space

VARIANTS = (
    *((n, 0.5) for n in (64, 96, 128, 192, 256, 1280)),
    *((128, power) for power in (0.0, 0.25, 0.75, 1.0)),
)
SEPARATIONS = (0.15, 0.2, 0.25, 0.3)
Collection = tuple[NDArray[Any], NDArray[Any]]


def read(folder: Path, encoder: MiniEncoder) -> Collection:
    images = encode_images(folder, encoder)
    rows = images.store.read(image_space(encoder), images.hashes or ())
    classes = [f"{folder.name}/{path.parent.name}" for path in images.paths]
    return encoder.visual(rows), np.array(classes)


def subsets(sets: list[Collection], draws: int) -> Iterator[Collection]:
    """Yield collections of some classes of one set, and of all sets together."""
    rng = np.random.default_rng(0)
    every = tuple(np.concatenate(parts) for parts in zip(*sets, strict=True))
    for _ in range(draws):
        for features, classes in (*sets, every):
            names = np.unique(classes)
            fewest = max(2, len(names) // 3)
            chosen = rng.choice(names, rng.integers(fewest, len(names) + 1), replace=False)
            kept = np.isin(classes, chosen)
            yield features[kept], classes[kept]


def whiten(X: NDArray[Any], n_components: int, power: float) -> NDArray[Any]:
    U, values, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = values[:n_components] > 1e-6 * values[0]
    return np.asarray(U[:, :n_components][:, kept] * values[:n_components][kept] ** (1 - power))


def scores(collections: list[Collection]) -> list[dict[str, Any]]:
    rows = []
    for n_components, power in VARIANTS:
        found = []
        for features, classes in collections:
            model = NTKSpectralClustering(len(set(classes.tolist())), random_state=0, n_jobs=-1)
            labels = model.fit_predict(whiten(features, n_components, power))
            score = clustering_scores(classes, labels)
            found.append((score.acc, score.nmi, score.ari))
        means = (100 * np.mean(found, axis=0)).round(1)
        named = dict(zip(("ACC", "NMI", "ARI"), means.tolist(), strict=True))
        rows.append({"components": n_components, "power": power} | named)
    return rows


def made_collections() -> list[Collection]:
    return [
        (data.features, data.labels)
        for k in (10, 40)
        for separation in SEPARATIONS
        for data in [make_clip_like(1000, k, separation=separation, random_state=0)]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--draws", type=int, default=8, help="subsets per folder (default: 8)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    encoder = MiniEncoder()
    collections = list(
        subsets([read(folder, encoder) for folder in arguments.folders], arguments.draws)
    )
    result = setting("scikit-learn")
    result[f"{len(collections)} collections of photographs"] = scores(collections)
    result["made CLIP-like features"] = scores(made_collections())
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
