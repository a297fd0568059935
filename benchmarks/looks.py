"""Two models that compare images: each alone, the mean of their cosines, and the product.

Run ``python benchmarks/looks.py FOLDER [FOLDER ...] --looks MODEL``; each folder has one sub-folder
per class, and MODEL is what ``nouncut cluster --looks`` takes. The number of clusters is the number
of classes. The kernel matrix is formed as a whole, so that all four rows are cut in the same way;
"words" multiplies it with the semantic factor of the embedded model. Mean accuracy of two seeds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from _setting import print_result, setting
from nouncut import NTKSpectralClustering, encode_images, encode_nouns
from nouncut.compute.rows import unit_rows
from nouncut.compute.softmax import softmax_rows
from nouncut.method.graphs import choose_neighbors
from nouncut.method.temperature import choose_tau
from nouncut.models.choose import load_image_encoder
from nouncut.models.encoder import ImageEncoder
from nouncut.models.mini import MiniEncoder
from nouncut.paper.scores import clustering_scores
from nouncut.words.filters import positive_nouns
from nouncut.words.nouns import load_nouns
from nouncut.words.wordnet import VISIBLE_LEXICONS

SEEDS = (0, 1)


def cosines(folder: Path, encoder: ImageEncoder) -> NDArray[Any]:
    features = unit_rows(encode_images(folder, encoder).visual())
    return np.asarray(features @ features.T)


def semantic_factor(folder: Path, encoder: MiniEncoder, n_clusters: int) -> NDArray[Any]:
    words = [noun.word for noun in load_nouns(lexicons=VISIBLE_LEXICONS)]
    semantic = unit_rows(encode_images(folder, encoder).semantic())
    vocabulary = encode_nouns(words, ["{}"], encoder)[0]
    nouns = vocabulary[positive_nouns(semantic, vocabulary, n_clusters, random_state=0)]
    probabilities = semantic @ nouns.T
    softmax_rows(probabilities, choose_tau(semantic, [nouns]))
    return np.asarray(probabilities @ probabilities.T)


def accuracy(kernel: NDArray[Any], classes: list[str], n_clusters: int) -> float:
    graph = nearest_graph(kernel, choose_neighbors(len(kernel), n_clusters))
    scores = []
    for seed in SEEDS:
        model = NTKSpectralClustering(n_clusters, affinity="precomputed", random_state=seed)
        scores.append(clustering_scores(classes, model.fit_predict(graph)).acc)
    return round(100 * float(np.mean(scores)), 1)


def nearest_graph(kernel: NDArray[Any], q: int) -> csr_array:
    kernel = np.maximum(kernel, 0)
    np.fill_diagonal(kernel, 0)
    nearest = np.argpartition(-kernel, q, axis=1)[:, :q]
    graph = np.zeros_like(kernel)
    np.put_along_axis(graph, nearest, np.take_along_axis(kernel, nearest, axis=1), axis=1)
    return csr_array(np.maximum(graph, graph.T))


def compare(folder: Path, mini: MiniEncoder, looks: ImageEncoder) -> list[dict[str, Any]]:
    classes = [path.parent.name for path in encode_images(folder, mini).paths]
    n_clusters = len(set(classes))
    first, second = cosines(folder, mini), cosines(folder, looks)
    words = semantic_factor(folder, mini, n_clusters)
    kernels = {
        mini.name: first,
        Path(looks.name).name: second,
        "mean of both": (first + second) / 2,
        "product of both": np.maximum(first, 0) * np.maximum(second, 0),
    }
    return [
        {
            "looks": name,
            "looks alone": accuracy(kernel, classes, n_clusters),
            "with words": accuracy(np.maximum(kernel, 0) * words, classes, n_clusters),
        }
        for name, kernel in kernels.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--looks", required=True, help="name or folder of the other model")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    mini, looks = MiniEncoder(), load_image_encoder(arguments.looks).encoder
    result = setting("onnxruntime")
    for folder in arguments.folders:
        result[folder.name] = compare(folder, mini, looks)
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
