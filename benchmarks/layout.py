"""How well maps keep neighbours close and clusters apart: ours, PCA and t-SNE.

Run it with ``python benchmarks/layout.py [FOLDER ...]``, each folder holding photographs, one
sub-folder per class; the number of clusters is the number of classes. ``--large`` adds 50,000 made
images in 1,000 clusters; ``--pictures DIR`` draws every map.

Trustworthiness (scikit-learn's, 1 at best) falls with every image that is among the 15 nearest on
the map but not in the visual features. Neighbours: the share of the 15 nearest on the map that are
neighbours in the graph. Same cluster: the share of them in the same cluster. A last table times
the repulsion of one step, pair by pair and on the grid.
"""

from __future__ import annotations

import argparse
import colorsys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from _setting import print_result, setting
from nouncut import NTKSpectralClustering, encode_nouns
from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import count_threads
from nouncut.layout.map import map_images
from nouncut.layout.repulsion import repel_on_grid, repel_pairs
from nouncut.method.graphs import neighbor_graph, normalize_graph, symmetrize_graph
from nouncut.method.neighbors import kernel_neighbors
from nouncut.paper.synthetic import make_clip_like
from nouncut.words.prompts import PROMPTS

N_NEAREST = 15
N_SAMPLED = 1000
# scikit-learn's t-SNE takes minutes for more images.
TSNE_SIZE = 2000
MADE = ((1000, 10), (2000, 100), (10_000, 10))
LARGE = (50_000, 1000)
REPULSION_SIZES, REPULSION_STEPS = (30, 100, 300, 1000, 2000), 50


@dataclass(frozen=True)
class Clustering:
    """The input of a map."""

    name: str
    features: NDArray[np.float32]
    embedding: NDArray[Any]
    graph: csr_array
    labels: NDArray[np.intp]


def made(n_images: int, n_clusters: int) -> Clustering:
    data = make_clip_like(n_images, n_clusters, n_nouns=3, n_prompts=1, random_state=0)
    model = NTKSpectralClustering(n_clusters, random_state=0, n_jobs=-1).fit(data.features)
    name = f"{n_images:,} made images, {n_clusters:,} clusters"
    return Clustering(name, data.features, model.embedding_, model.graph_, model.labels_)


def made_large(n_images: int, n_clusters: int) -> Clustering:
    """Use the classes as clusters, so that only the graph is computed."""
    data = make_clip_like(
        n_images, n_clusters, n_nouns=3, n_prompts=1, dim=256, separation=0.6, random_state=0
    )
    nearest = kernel_neighbors(data.features, [], 30, n_threads=count_threads(-1))[0]
    graph = normalize_graph(symmetrize_graph(neighbor_graph(nearest, n_images)))[0]
    classes = np.eye(n_clusters, dtype=np.float32)[data.labels]
    name = f"{n_images:,} made images, {n_clusters:,} classes as clusters"
    return Clustering(name, data.features, unit_rows(graph @ classes), graph, data.labels)


def photographed(folder: Path, encoder: Any) -> Clustering:
    from quality import Photographs

    data = Photographs(folder, encoder)
    prompts = encode_nouns(data.nouns("tac", seed=0), PROMPTS, encoder)
    model = NTKSpectralClustering(data.n_clusters, tau="auto", random_state=0, n_jobs=-1).fit(
        data.visual, noun_features=prompts, semantic_features=data.semantic
    )
    name = f"{data.name}: {len(data.visual):,} images, {data.n_clusters} clusters, {encoder.name}"
    features = unit_rows(data.visual).astype(np.float32)
    return Clustering(name, features, model.embedding_, model.graph_, model.labels_)


def maps(data: Clustering) -> Iterator[tuple[str, Callable[[], NDArray[Any]]]]:
    """Yield the name of every kind of map and the function that makes it."""

    def ours() -> NDArray[Any]:
        n_threads = count_threads(-1)
        return map_images(data.embedding, data.graph, data.labels, n_threads=n_threads)

    yield "nouncut", ours
    yield "PCA of the features", lambda: PCA(2, random_state=0).fit_transform(data.features)
    yield "PCA of the embedding", lambda: PCA(2, random_state=0).fit_transform(data.embedding)
    if len(data.labels) <= TSNE_SIZE:
        yield (
            "t-SNE of the features (scikit-learn)",
            lambda: TSNE(metric="cosine", init="pca", random_state=0).fit_transform(data.features),
        )


def trustworthiness(
    features: NDArray[Any], rows: NDArray[np.intp], nearest: NDArray[np.intp]
) -> float:
    """Return scikit-learn's trustworthiness for some of the images."""
    n, k = len(features), nearest.shape[1]
    cosines = features[rows] @ features.T
    np.put_along_axis(cosines, rows[:, None], np.inf, axis=1)
    near = np.take_along_axis(cosines, nearest, axis=1)
    ranks = np.stack(
        [np.searchsorted(np.sort(-own), -some) for own, some in zip(cosines, near, strict=True)]
    )
    penalty = np.maximum(ranks - k, 0).sum()
    return float(1 - 2 * penalty / (len(rows) * k * (2 * n - 3 * k - 1)))


def measure(data: Clustering, positions: NDArray[Any]) -> dict[str, float]:
    n = len(positions)
    rows = np.sort(np.random.default_rng(0).permutation(n)[:N_SAMPLED])
    search = NearestNeighbors(n_neighbors=N_NEAREST + 1).fit(positions)
    found = search.kneighbors(positions[rows], return_distance=False)
    # The image itself need not come first if it has copies.
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True
    nearest = found[~own].reshape(len(rows), N_NEAREST)
    edges = data.graph[np.repeat(rows, N_NEAREST), nearest.ravel()]
    return {
        "trustworthiness": round(trustworthiness(data.features, rows, nearest), 4),
        "neighbours %": round(100 * float(np.mean(edges > 0)), 1),
        "same cluster %": round(
            100 * float(np.mean(data.labels[nearest] == data.labels[rows, None])), 1
        ),
    }


def draw(positions: NDArray[Any], labels: NDArray[np.intp], path: Path, side: int = 800) -> None:
    """Draw a map at twice the size and shrink it, so that dots are round."""
    lowest, span = positions.min(axis=0), np.ptp(positions, axis=0).max()
    radius = min(10.0, max(1.5, 0.2 * 2 * side / np.sqrt(len(positions))))
    points = 20 + (positions - lowest) / span * (2 * side - 40)
    picture = Image.new("RGB", (2 * side, 2 * side), "white")
    brush = ImageDraw.Draw(picture)
    for row in np.random.default_rng(0).permutation(len(positions)):
        hue = labels[row] * 0.618 % 1
        red, green, blue = colorsys.hls_to_rgb(hue, 0.35 + 0.1 * (labels[row] % 3), 0.7)
        x, y = points[row]
        brush.ellipse(
            (x - radius, y - radius, x + radius, y + radius),
            fill=(int(255 * red), int(255 * green), int(255 * blue)),
        )
    picture.resize((side, side), Image.Resampling.LANCZOS).save(path)


def compare(data: Clustering, pictures: Path | None) -> list[dict[str, Any]]:
    rows = []
    for name, make in maps(data):
        start = time.perf_counter()
        positions = make()
        seconds = round(time.perf_counter() - start, 2)
        rows.append({"map": name} | measure(data, positions) | {"seconds": seconds})
        if pictures is not None:
            pictures.mkdir(parents=True, exist_ok=True)
            title = f"{data.name}-{name}".replace(" ", "-").replace("/", "-")
            draw(positions, data.labels, pictures / f"{title}.png")
    return rows


def clusterings(folders: list[Path], model: str, large: bool) -> Iterator[Clustering]:
    for size in MADE:
        yield made(*size)
    if large:
        yield made_large(*LARGE)
    if folders:
        from nouncut.models.choose import load_encoder

        encoder = load_encoder(model).encoder
        for folder in folders:
            yield photographed(folder, encoder)


def repulsion_rows() -> list[dict[str, Any]]:
    rng, n_threads, rows = np.random.default_rng(0), count_threads(-1), []
    for n_points in REPULSION_SIZES:
        # The area of a map grows with the number of images.
        points = (0.3 * np.sqrt(n_points) * rng.normal(size=(n_points, 2))).astype(np.float32)
        row: dict[str, Any] = {"points": n_points}
        for name, repel in (("pairs", repel_pairs), ("grid", repel_on_grid)):
            repel(points, n_threads)
            start = time.perf_counter()
            for _ in range(REPULSION_STEPS):
                repel(points, n_threads)
            seconds = (time.perf_counter() - start) / REPULSION_STEPS
            row[f"{name} (ms)"] = round(1000 * seconds, 3)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders with a folder per class")
    parser.add_argument("--model", default="mini", help="what load_encoder takes (default: mini)")
    parser.add_argument("--large", action="store_true", help="add a set of 50,000 images")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of the maps")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = setting("scikit-learn")
    # Compile before anything is timed.
    tiny = made(60, 2)
    map_images(tiny.embedding, tiny.graph, tiny.labels)
    for data in clusterings(arguments.folders, arguments.model, arguments.large):
        result[data.name] = compare(data, arguments.pictures)
    result["One step of repulsion"] = repulsion_rows()
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
