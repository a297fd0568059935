"""Neighbours of all images: by brute force if that takes seconds, among candidates otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.checks import warn_user
from nouncut.compute.pairs import PackedRows, empty_packed_rows, pack_rows, pair_products
from nouncut.compute.progress import Progress
from nouncut.method.candidates import RANK, candidate_pairs, near_blocks, noun_factors
from nouncut.method.kernel import Kernel, noun_probabilities, softmax_blocks
from nouncut.method.neighbors import (
    Nearest,
    Neighbors,
    all_blocks,
    kernel_neighbors,
    nearest_partners,
    offer_rows,
    partners_of_pairs,
    search_blocks,
)

Search = Literal["auto", "exact", "candidates", "cells"]
# Brute force takes about two seconds for this many multiplications.
_BRUTE_FORCE = 2e11
# From this number of images on, only images of near cells are compared.
_CELLS_FROM = 300_000
_QUERIES_AT_ONCE = 2048
# Recall is measured on these images; a search with less under any prompt is repeated with more
# effort.
CHECKED_IMAGES = 64
_ENOUGH, _MORE = 0.99, 4
# As many candidates as find this share under the hardest prompt in a sample of the images, half of
# what may be missed: at most 16 per neighbour, and 6 where all images would have too many pairs.
_FOUND = 0.995
_MOST_CANDIDATES, _FEWER_CANDIDATES, _MANY_PAIRS = 16, 6, 10**8
_SAMPLED, _SAMPLED_CHECKED = 4096, 256


class KernelSearch(NamedTuple):
    """Neighbours under every prompt, the method that found them, and its recall."""

    neighbors: list[Neighbors]
    method: str
    recall: float


def search_neighbors(
    kernel: Kernel,
    q: int,
    *,
    method: Search = "auto",
    max_bytes: float | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> KernelSearch:
    """Find the q largest kernel values of every image under every prompt."""
    n_images, width = kernel.features.shape
    n_nouns = sum(len(nouns) for nouns in kernel.prompts)
    limit = np.inf if max_bytes is None else max(max_bytes, 1.0)
    if method == "auto":
        quick = can_compare_all(n_images, width + n_nouns)
        if quick and 4.0 * n_images * n_nouns <= limit:
            method = "exact"
        else:
            method = "cells" if n_images >= _CELLS_FROM else "candidates"
    if method == "exact":
        probabilities = noun_probabilities(
            kernel.semantic, kernel.prompts, kernel.tau, n_threads, kernel.weight
        )
        found = kernel_neighbors(
            kernel.features, probabilities, q, n_threads=n_threads, progress=progress
        )
        return KernelSearch(found, "exact", 1.0)
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
    found = [Nearest.empty(len(features), q) for _ in kernel.prompts]
    for first in range(0, len(features), _QUERIES_AT_ONCE):
        part = slice(first, first + _QUERIES_AT_ONCE)
        for nouns, nearest in zip(kernel.prompts, found, strict=True):
            coupling = kernel.tau, n_threads, kernel.weight
            own = noun_probabilities(semantic[part], [nouns], *coupling)[0]
            queries = nearest.of(part), features[part], own
            offer = partial(_offer_block, *queries, kernel.features, Lock())
            softmax_blocks(kernel.semantic, nouns, kernel.tau, offer, n_threads, kernel.weight)
    return [nearest.sorted() for nearest in found]


def _offer_block(
    nearest: Nearest,
    queries: NDArray[Any],
    probabilities: NDArray[Any],
    features: NDArray[Any],
    lock: Any,
    rows: slice,
    block: NDArray[Any],
) -> None:
    """Offer some images, given by their rows and noun probabilities, to all queries."""
    values = (queries @ features[rows].T) * (probabilities @ block.T)
    with lock:
        offer_rows(nearest, values.astype(np.float32, copy=False), rows.start)


def _search_candidates(
    kernel: Kernel,
    q: int,
    in_cells: bool,
    limit: float,
    n_threads: int,
    progress: Progress | None,
) -> KernelSearch:
    # The second attempt after cells compares all images: longer factors would not fit in memory.
    attempts = [(True, 1), (False, 1)] if in_cells else [(False, 1), (False, _MORE)]
    for in_cells, effort in attempts:
        order, factors, blocks = _cheap_kernel(kernel, in_cells, effort, n_threads)
        ordered = kernel.take(order)
        n_candidates = _choose_candidates(ordered, factors, q, effort, n_threads)
        pairs = _find_pairs(ordered.features, factors, blocks, n_candidates, n_threads, progress)
        found, recall = _rank_pairs(ordered, order, pairs, q, limit, n_threads, progress)
        if recall >= _ENOUGH:
            break
    else:
        warn_user(
            f"The search found {recall:.1%} of the nearest images: many are nearly as near as each "
            "other, or prompts disagree about them."
        )
    return KernelSearch(found, "cells" if in_cells else "candidates", recall)


def _cheap_kernel(
    kernel: Kernel, in_cells: bool, effort: int, n_threads: int
) -> tuple[NDArray[np.intp], list[NDArray[np.float32]], list[tuple[slice, slice]]]:
    """Return an order of the images, factors of the mean prompt in it, and blocks to search.

    In that order most near images are close together, so their rows are in the cache.
    """
    factors: list[NDArray[Any]] = []
    if kernel.prompts:
        own = noun_factors(
            kernel.semantic,
            mean_prompt(kernel.prompts),
            kernel.tau,
            rank=effort * RANK,
            n_threads=n_threads,
            weight=kernel.weight,
        )
        factors = [own]
    order, blocks = near_blocks(kernel.features, factors, n_threads)
    blocks = blocks if in_cells else all_blocks(len(kernel.features))
    return order, [rows[order] for rows in factors], blocks


def _choose_candidates(
    kernel: Kernel, factors: list[NDArray[np.float32]], q: int, effort: int, n_threads: int
) -> int:
    """Return how many candidates every image has."""
    n_images = len(kernel.features)
    if not factors:
        return min(q, n_images - 1)
    most = int(np.clip(_MANY_PAIRS // n_images, _FEWER_CANDIDATES * q, _MOST_CANDIDATES * q))
    some = np.linspace(0, n_images - 1, min(n_images, _SAMPLED)).astype(np.intp)
    needed = candidates_needed(
        kernel.take(some),
        factors[0][some],
        q,
        _SAMPLED_CHECKED,
        found=_FOUND,
        share=len(some) / n_images,
        n_threads=n_threads,
    )
    return min(effort * min(max(q, needed.number), most), n_images - 1)


def mean_prompt(prompts: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
    """Return the mean of the nouns' features over all prompts."""
    return np.asarray(np.mean(prompts, axis=0, dtype=np.float32))


class _Pairs(NamedTuple):
    """Pairs of images that may be neighbours, and the cosines of their features."""

    pairs: csr_array
    partners: csr_array
    cosines: NDArray[np.float32]


def _find_pairs(
    features: NDArray[Any],
    factors: list[NDArray[np.float32]],
    blocks: list[tuple[slice, slice]],
    n_candidates: int,
    n_threads: int,
    progress: Progress | None,
) -> _Pairs:
    """Return the pairs of images that are near under the mean prompt."""
    nearest = search_blocks(
        features, factors, n_candidates, blocks, n_threads=n_threads, progress=progress
    )[0]
    pairs = candidate_pairs(nearest.sorted().indices)
    cosines = pair_products(pairs, features.astype(np.float32, copy=False), n_threads)
    return _Pairs(pairs, partners_of_pairs(pairs), cosines)


def places_needed(cheap: NDArray[Any], true: NDArray[np.intp], found: float) -> int:
    """Return how many of the largest values in every row hold a share of the true columns."""
    places = []
    for values, columns in zip(cheap, true, strict=True):
        wanted = values[columns[columns >= 0]]
        places.append(len(values) - np.searchsorted(np.sort(values), wanted))
    return int(np.quantile(np.concatenate([[1], *places]), found, method="higher"))


class Candidates(NamedTuple):
    """How many candidates of the mean prompt are needed, and for which prompt."""

    number: int
    hardest: int


def candidates_needed(
    kernel: Kernel,
    factors: NDArray[np.float32],
    q: int,
    n_checked: int,
    *,
    found: float,
    share: float = 1.0,
    n_threads: int = 1,
) -> Candidates:
    """Return how many candidates hold enough neighbours under every prompt.

    `found` is the share of neighbours that they should hold, `factors` are those of the mean
    prompt. The images are a `share` of the collection.
    """
    checked = _check(kernel, n_checked)
    cheap = checked.cosines * (factors[checked.images] @ factors.T)
    # So many sampled images are as near as the q nearest of the collection.
    n_near = max(1, round(share * q))
    places = []
    for prompt in range(len(kernel.prompts)):
        overlaps = _overlaps(kernel, prompt, checked.images, n_threads)
        places.append(places_needed(cheap, _true_neighbors(checked, overlaps, n_near), found))
    return Candidates(round(max(places) / share), int(np.argmax(places)))


def true_neighbors(
    kernel: Kernel, prompt: int, q: int, n_checked: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return evenly spaced images and their neighbours (n_checked, q), -1 where there are fewer."""
    checked = _check(kernel, n_checked)
    overlaps = _overlaps(kernel, prompt, checked.images) if kernel.prompts else 1
    return checked.images, _true_neighbors(checked, overlaps, q)


def _check(kernel: Kernel, n_checked: int) -> _Checked:
    n_images = len(kernel.features)
    images = np.linspace(0, n_images - 1, min(n_images, n_checked)).astype(np.intp)
    return _Checked(images, kernel.features[images] @ kernel.features.T)


def _overlaps(
    kernel: Kernel, number: int, images: NDArray[np.intp], n_threads: int = 1
) -> NDArray[np.float32]:
    """Return the overlaps of some images with all images under a prompt."""
    nouns = kernel.prompts[number]
    own = noun_probabilities(kernel.semantic[images], [nouns], kernel.tau, 1, kernel.weight)[0]
    overlaps = np.empty((len(images), len(kernel.semantic)), np.float32)

    def compare(rows: slice, block: NDArray[Any]) -> None:
        overlaps[:, rows] = own @ block.T

    softmax_blocks(kernel.semantic, nouns, kernel.tau, compare, n_threads, kernel.weight)
    return overlaps


class _Checked(NamedTuple):
    """Images on which the recall is measured, and their cosines with all images."""

    images: NDArray[np.intp]
    cosines: NDArray[np.float32]


def _rank_pairs(
    kernel: Kernel,
    names: NDArray[np.intp],
    chosen: _Pairs,
    q: int,
    limit: float,
    n_threads: int,
    progress: Progress | None,
) -> tuple[list[Neighbors], float]:
    """Return the nearest images of every image among its pairs, and the lowest recall."""
    n_images, checked = len(names), _check(kernel, CHECKED_IMAGES)
    images = checked.images
    n_graphs = max(1, len(kernel.prompts))
    neighbors, recalls = [], []
    for number in range(n_graphs):
        values: Any = 0
        overlaps: Any = 1
        for packed, found_overlaps in noun_parts(kernel, number, images, limit, n_threads):
            values += pair_products(chosen.pairs, packed, n_threads) if packed else 1
            overlaps = found_overlaps
        values *= chosen.cosines
        found = nearest_partners(chosen.partners, values, names, q, n_threads).sorted()
        neighbors.append(found)
        true = _true_neighbors(checked, overlaps, q)
        recalls.append(_recall(found.indices[names[images]], true, names))
        if progress:
            progress("evaluating prompts", len(recalls), n_graphs)
    all_pairs = chosen.pairs.nnz == n_images * (n_images - 1) // 2
    return neighbors, 1.0 if all_pairs else min(recalls)


def noun_parts(
    kernel: Kernel,
    number: int,
    checked: NDArray[np.intp],
    limit: float,
    n_threads: int,
    n_compared: int | None = None,
) -> Iterator[tuple[PackedRows | None, NDArray[np.float32] | int]]:
    """Yield the probabilities of some nouns, and the checked images' overlaps with all images.

    With `n_compared`, the overlaps are those with the first images only. If the probabilities of
    all nouns exceed the limit, they come in several parts.
    """
    if not kernel.prompts:
        yield None, 1
        return
    semantic, nouns = kernel.semantic, kernel.prompts[number]
    own = noun_probabilities(semantic[checked], [nouns], kernel.tau, 1, kernel.weight)[0]
    n = len(semantic)
    overlaps = np.empty((len(checked), n if n_compared is None else n_compared), np.float32)
    n_parts = min(len(nouns), max(1, int(np.ceil(2 * n * len(nouns) / limit))))
    width = -(-len(nouns) // n_parts)
    numbers, units = empty_packed_rows(n, width)
    numbers = numbers.ravel()
    for first in range(0, len(nouns), width):
        columns = slice(first, min(first + width, len(nouns)))
        packed = PackedRows(numbers[: n * (columns.stop - first)].reshape(n, -1), units)

        def pack(
            rows: slice,
            block: NDArray[Any],
            packed: PackedRows = packed,
            columns: slice = columns,
        ) -> None:
            pack_rows(block[:, columns].astype(np.float32, copy=False), packed, rows.start)
            compared = overlaps[:, rows]
            compared[:] = own @ block[: compared.shape[1]].T

        softmax_blocks(semantic, nouns, kernel.tau, pack, n_threads, kernel.weight)
        yield packed, overlaps


def _true_neighbors(checked: _Checked, overlaps: NDArray[Any] | int, q: int) -> NDArray[np.intp]:
    """Return the images with the q largest positive kernel values, -1 where there are fewer."""
    n_checked, n_images = checked.cosines.shape
    found = np.empty((n_checked, min(q, n_images - 1)), np.intp)
    # One image at a time: the places of all values take twice the memory of the values.
    for row, image in enumerate(checked.images):
        kernel = checked.cosines[row] * (overlaps if isinstance(overlaps, int) else overlaps[row])
        kernel[image] = 0
        largest = np.argpartition(-kernel, found.shape[1] - 1)[: found.shape[1]]
        found[row] = np.where(kernel[largest] > 0, largest, -1)
    return found


def _recall(found: NDArray[np.int32], true: NDArray[np.intp], names: NDArray[np.intp]) -> float:
    """Return the share of the checked images' true neighbours that were found."""
    shares = []
    for own, nearest in zip(found, true, strict=True):
        nearest = names[nearest[nearest >= 0]]
        shares.append(np.isin(nearest, own).mean() if len(nearest) else 1.0)
    return float(np.mean(shares))
