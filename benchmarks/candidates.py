"""Candidates for nearest images: our cells beside the indexes of faiss, usearch and pynndescent.

``pip install faiss-cpu usearch pynndescent``, then ``python benchmarks/candidates.py``. The kernel
is a product of two inner products, so an index that knows one metric is given the features with
the factors of the noun probabilities beside them, each of length one. Recall is the share of the
30 images with the largest kernel values that are among 90 candidates, for 500 images.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting
from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import count_threads
from nouncut.method.candidates import near_blocks, noun_factors
from nouncut.method.kernel import noun_probabilities
from nouncut.method.neighbors import search_blocks
from nouncut.paper.synthetic import make_clip_like

TAU, Q, N_CANDIDATES, N_CHECKED = 0.04, 30, 90, 500
Candidates = NDArray[Any]


def our_cells(features: NDArray[Any], factors: NDArray[Any]) -> Candidates:
    threads = count_threads(-1)
    order, blocks = near_blocks(features, [factors], threads)
    found = search_blocks(
        features[order], [factors[order]], N_CANDIDATES, blocks, n_threads=threads
    )[0].sorted()
    candidates = np.empty_like(found.indices)
    candidates[order] = order[found.indices]
    return candidates


def joined(features: NDArray[Any], factors: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(np.hstack([features, unit_rows(factors)]), dtype=np.float32)


def faiss_inverted_file(features: NDArray[Any], factors: NDArray[Any]) -> Candidates:
    import faiss

    rows = joined(features, factors)
    n_lists = max(1, len(rows) // 500)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(rows.shape[1]), rows.shape[1], n_lists, 0)
    index.train(rows[:: max(1, len(rows) // (50 * n_lists))])
    index.add(rows)
    index.nprobe = max(24, round(0.04 * n_lists))
    return np.asarray(index.search(rows, N_CANDIDATES + 1)[1])


def faiss_graph(features: NDArray[Any], factors: NDArray[Any]) -> Candidates:
    import faiss

    rows = joined(features, factors)
    index = faiss.IndexHNSWFlat(rows.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efSearch = 200
    index.add(rows)
    return np.asarray(index.search(rows, N_CANDIDATES + 1)[1])


def usearch_graph(features: NDArray[Any], factors: NDArray[Any]) -> Candidates:
    from usearch.index import Index

    rows = joined(features, factors)
    index = Index(ndim=rows.shape[1], metric="ip", dtype="f32", expansion_search=200)
    index.add(np.arange(len(rows)), rows)
    return np.asarray(index.search(rows, N_CANDIDATES + 1).keys)


def pynndescent_graph(features: NDArray[Any], factors: NDArray[Any]) -> Candidates:
    from pynndescent import NNDescent

    index = NNDescent(
        joined(features, factors), metric="cosine", n_neighbors=N_CANDIDATES + 1, random_state=0
    )
    return np.asarray(index.neighbor_graph[0])


METHODS: dict[str, Callable[[NDArray[Any], NDArray[Any]], Candidates]] = {
    "cells (ours)": our_cells,
    "faiss, inverted file": faiss_inverted_file,
    "faiss, HNSW": faiss_graph,
    "usearch, HNSW": usearch_graph,
    "pynndescent": pynndescent_graph,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--method", choices=METHODS, action="append", help="all by default")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    data = make_clip_like(
        arguments.images, 100, n_nouns=2000, n_prompts=1, separation=0.45, random_state=0
    )
    images, nouns = data.features, data.noun_features[0]
    factors = noun_factors(images, nouns, TAU, n_threads=count_threads(-1))
    checked = np.linspace(0, len(images) - 1, N_CHECKED).astype(np.intp)
    own = noun_probabilities(images[checked], [nouns], TAU)[0]
    kernel = images[checked] @ images.T
    for first in range(0, len(images), 10_000):
        part = slice(first, first + 10_000)
        kernel[:, part] *= own @ noun_probabilities(images[part], [nouns], TAU)[0].T
    kernel[np.arange(N_CHECKED), checked] = -1
    truth = np.argpartition(-kernel, Q, axis=1)[:, :Q]
    rows = []
    for name in arguments.method or METHODS:
        start = time.perf_counter()
        found = METHODS[name](images, factors)
        seconds = time.perf_counter() - start
        pairs = zip(truth, found[checked], strict=True)
        recall = float(np.mean([np.isin(true, near).mean() for true, near in pairs]))
        rows.append({"candidates from": name, "seconds": seconds, "recall@30": recall})
    print_result(
        setting("scikit-learn") | {f"Candidates, {arguments.images:,} images": rows}, arguments.json
    )


if __name__ == "__main__":
    main()
