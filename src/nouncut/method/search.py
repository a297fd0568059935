"""Neighbours of all images: by brute force if that takes seconds, among candidates otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.checks import warn_user
from nouncut.compute.pairs import PackedRows, empty_packed_rows, pack_rows, pair_products
from nouncut.compute.progress import Progress
from nouncut.compute.threads import run_tasks
from nouncut.method.candidates import RANK, candidate_pairs, near_blocks, noun_factors
from nouncut.method.kernel import Kernel, noun_probabilities, softmax_blocks
from nouncut.method.neighbors import (
    Neighbors,
    all_blocks,
    empty_heaps,
    kernel_neighbors,
    offer_pairs,
    offer_rows,
    search_blocks,
    sort_heaps,
)

Search = Literal["auto", "exact", "candidates", "cells"]
# Brute force takes about two seconds for this many multiplications.
_BRUTE_FORCE = 2e11
# From this number of images on, only images of near cells are compared.
_CELLS_FROM = 300_000
_QUERIES_AT_ONCE = 2048
# Recall is measured on these images; a search with less is repeated with more candidates.
_CHECKED_IMAGES = 64
_ENOUGH, _MORE = 0.995, 4
# A candidate costs time in proportion to the nouns; up to this number each image gets more of them.
_FEW_NOUNS = 20_000


class KernelSearch(NamedTuple):
    """Neighbours under every prompt, the method that found them, and its recall."""

    neighbors: list[Neighbors]
    method: str
    recall: float


def search_neighbors(
    features: NDArray[Any],
    semantic: NDArray[Any],
    prompts: Sequence[NDArray[Any]],
    tau: float,
    q: int,
    *,
    method: Search = "auto",
    max_bytes: float | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> KernelSearch:
    """Find the q largest kernel values of every image under every prompt."""
    n_images, n_nouns = len(features), sum(len(nouns) for nouns in prompts)
    limit = np.inf if max_bytes is None else max(max_bytes, 1.0)
    if method == "auto":
        quick = can_compare_all(n_images, features.shape[1] + n_nouns)
        if quick and 4.0 * n_images * n_nouns <= limit:
            method = "exact"
        else:
            method = "cells" if n_images >= _CELLS_FROM else "candidates"
    if method == "exact":
        probabilities = noun_probabilities(semantic, prompts, tau, n_threads)
        found = kernel_neighbors(features, probabilities, q, n_threads=n_threads, progress=progress)
        return KernelSearch(found, "exact", 1.0)
    kernel = Kernel(features, semantic, prompts, tau)
    return _search_candidates(kernel, q, method == "cells", limit, n_threads, progress)


def can_compare_all(n_images: int, width: int) -> bool:
    """Tell whether brute force takes seconds; `width` counts features and nouns of all prompts."""
    return float(n_images) ** 2 * width <= _BRUTE_FORCE


def query_neighbors(
    kernel: Kernel,
    q: int,
    features: NDArray[Any],
    semantic: NDArray[Any],
    n_threads: int = 1,
) -> list[Neighbors]:
    """Find the q images with the largest kernel values for every new image, by brute force."""
    if not kernel.prompts:
        return kernel_neighbors(kernel.features, [], q, queries=(features, []), n_threads=n_threads)
    found = [empty_heaps(len(features), q) for _ in kernel.prompts]
    for first in range(0, len(features), _QUERIES_AT_ONCE):
        part = slice(first, first + _QUERIES_AT_ONCE)
        for nouns, (indices, values) in zip(kernel.prompts, found, strict=True):
            own = noun_probabilities(semantic[part], [nouns], kernel.tau, n_threads)[0]
            heaps = Neighbors(indices[part], values[part])
            offer = partial(_offer_block, heaps, Lock(), features[part], own, kernel.features)
            softmax_blocks(kernel.semantic, nouns, kernel.tau, offer, n_threads)
    return [sort_heaps(nearest) for nearest in found]


def _offer_block(
    heaps: Neighbors,
    lock: Any,
    queries: NDArray[Any],
    probabilities: NDArray[Any],
    features: NDArray[Any],
    rows: slice,
    block: NDArray[Any],
) -> None:
    """Offer some images, given by their rows and noun probabilities, to all queries."""
    visual, semantic = queries @ features[rows].T, probabilities @ block.T
    with lock:
        offer_rows(visual, semantic, rows.start, heaps.values, heaps.indices)


def _search_candidates(
    kernel: Kernel,
    q: int,
    in_cells: bool,
    limit: float,
    n_threads: int,
    progress: Progress | None,
) -> KernelSearch:
    n_images = len(kernel.features)
    # The second attempt after cells compares all images: longer factors would not fit in memory.
    attempts = [(True, 1), (False, 1)] if in_cells else [(False, 1), (False, _MORE)]
    for in_cells, effort in attempts:
        order, pairs = _find_pairs(kernel, q, in_cells, effort, n_threads, progress)
        found, recall = _rank_pairs(kernel.take(order), pairs, q, limit, n_threads, progress)
        if recall >= _ENOUGH or pairs.nnz >= n_images * (n_images - 1) // 2:
            break
    else:
        warn_user(
            f"The search found {recall:.1%} of the nearest images: many are nearly as near as each "
            "other, or prompts disagree about them."
        )
    neighbors = run_tasks(lambda own: sort_heaps(_restore_order(own, order)), found, n_threads)
    return KernelSearch(neighbors, "cells" if in_cells else "candidates", recall)


def _find_pairs(
    kernel: Kernel,
    q: int,
    in_cells: bool,
    effort: int,
    n_threads: int,
    progress: Progress | None,
) -> tuple[NDArray[np.intp], csr_array]:
    """Return pairs of images that are near under the mean prompt, and the order they refer to.

    In that order most pairs are close together, so their rows are in the cache.
    """
    features, semantic, prompts, tau = kernel
    factors: list[NDArray[Any]] = []
    if prompts:
        mean = np.asarray(np.mean(prompts, axis=0, dtype=np.float32))
        factors = [noun_factors(semantic, mean, tau, rank=effort * RANK, n_threads=n_threads)]
    is_cheap = sum(len(nouns) for nouns in prompts) <= _FEW_NOUNS
    n_candidates = round(effort * (3 if is_cheap else 2.5) * q) if prompts else q
    order, blocks = near_blocks(features, factors, n_threads)
    if not in_cells:
        blocks = all_blocks(len(features))
    found = search_blocks(
        features[order],
        [rows[order] for rows in factors],
        min(len(features) - 1, n_candidates),
        blocks,
        n_threads=n_threads,
        progress=progress,
    )[0]
    return order, candidate_pairs(found)


def _restore_order(found: Neighbors, order: NDArray[np.intp]) -> Neighbors:
    """Return the neighbours of images, given those of images in another order."""
    back = Neighbors(np.empty_like(found.indices), np.empty_like(found.values))
    back.indices[order] = np.where(found.indices >= 0, order[found.indices], -1)
    back.values[order] = found.values
    return back


def _rank_pairs(
    kernel: Kernel,
    pairs: csr_array,
    q: int,
    limit: float,
    n_threads: int,
    progress: Progress | None,
) -> tuple[list[Neighbors], float]:
    """Return the nearest images of every image among its pairs, as heaps, and the recall."""
    features = kernel.features
    n_checked = min(len(features), _CHECKED_IMAGES)
    checked = np.linspace(0, len(features) - 1, n_checked).astype(np.intp)
    truth = features[checked] @ features.T
    visual = pair_products(pairs, features.astype(np.float32, copy=False), n_threads)
    neighbors, recalls = [], []
    n_graphs = max(1, len(kernel.prompts))
    for number in range(n_graphs):
        semantic: Any = 1
        overlaps: Any = 1
        if kernel.prompts:
            semantic, overlaps = _evaluate_prompt(kernel, number, pairs, checked, limit, n_threads)
        found = empty_heaps(len(features), q)
        offer_pairs(pairs, visual * semantic, found, n_threads)
        neighbors.append(found)
        recalls.append(_recall(found.indices[checked], truth * overlaps, checked))
        if progress:
            progress("evaluating prompts", number + 1, n_graphs)
    return neighbors, float(np.mean(recalls))


def _evaluate_prompt(
    kernel: Kernel,
    number: int,
    pairs: csr_array,
    checked: NDArray[np.intp],
    limit: float,
    n_threads: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the semantic overlaps of the pairs, and of the checked images with all images.

    If the probabilities of all nouns exceed the limit, parts of the nouns add their shares in turn.
    """
    semantic, nouns = kernel.semantic, kernel.prompts[number]
    own = noun_probabilities(semantic[checked], [nouns], kernel.tau)[0]
    overlaps = np.empty((len(checked), len(semantic)), np.float32)
    products = np.zeros(pairs.nnz, np.float32)
    n_parts = min(len(nouns), max(1, int(np.ceil(2 * len(semantic) * len(nouns) / limit))))
    for part in np.array_split(np.arange(len(nouns)), n_parts):
        columns = slice(part[0], part[-1] + 1)
        packed = empty_packed_rows(len(semantic), len(part))

        def pack(
            rows: slice,
            block: NDArray[Any],
            packed: PackedRows = packed,
            columns: slice = columns,
        ) -> None:
            pack_rows(block[:, columns].astype(np.float32, copy=False), packed, rows.start)
            overlaps[:, rows] = own @ block.T

        softmax_blocks(semantic, nouns, kernel.tau, pack, n_threads)
        products += pair_products(pairs, packed, n_threads)
    return products, overlaps


def _recall(found: NDArray[np.int32], kernel: NDArray[Any], checked: NDArray[np.intp]) -> float:
    """Return the share of the checked images' largest positive kernel values that were found."""
    kernel[np.arange(len(checked)), checked] = 0
    q = found.shape[1]
    nearest = np.argpartition(-kernel, q - 1, axis=1)[:, :q]
    shares = []
    for own, true, values in zip(found, nearest, kernel, strict=True):
        true = true[values[true] > 0]
        shares.append(np.isin(true, own).mean() if len(true) else 1.0)
    return float(np.mean(shares))
