"""Batches of token sequences in which a causal text tower computes nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Fills a sequence after its end; no token has this number.
NO_TOKEN = -1


@dataclass(frozen=True)
class PrefixGroup:
    """Rows whose first `depth` tokens are equal."""

    rows: NDArray[np.intp]
    depth: int


def cut_sequences(
    tokens: NDArray[Any], ends: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return distinct sequences, sorted and cut after their ends, and the row of every input."""
    longest = int(ends.max(initial=-1)) + 1
    after_end = np.arange(longest) > ends[:, None]
    cut = np.where(after_end, NO_TOKEN, tokens[:, :longest]).astype(np.int64)
    order = np.lexsort(cut.T[::-1])
    ordered = cut[order]
    is_new = np.ones(len(cut), dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = np.empty(len(cut), dtype=np.intp)
    inverse[order] = np.cumsum(is_new) - 1
    return ordered[is_new], inverse


def prefix_groups(sequences: NDArray[np.int64], smallest: int) -> Iterator[PrefixGroup]:
    """Group sorted sequences by common prefixes that at least `smallest` of them share."""
    if len(sequences):
        yield from _split(sequences, 0, len(sequences), 0, smallest)


def _split(
    sequences: NDArray[np.int64], start: int, stop: int, depth: int, smallest: int
) -> Iterator[PrefixGroup]:
    """Split rows that share `depth` tokens by their next token."""
    if depth == sequences.shape[1]:
        yield PrefixGroup(np.arange(start, stop), depth - 1)
        return
    column = sequences[start:stop, depth]
    cuts = np.flatnonzero(column[1:] != column[:-1]) + start + 1
    rest = []
    for first, last in zip((start, *cuts), (*cuts, stop), strict=True):
        if last - first >= smallest and sequences[first, depth] != NO_TOKEN:
            yield from _split(sequences, int(first), int(last), depth + 1, smallest)
        else:
            rest.append(np.arange(first, last))
    if rest:
        rows = np.concatenate(rest)
        # A sequence that ends with the prefix still needs its last token for pooling.
        ended = (sequences[rows, depth] == NO_TOKEN).any()
        yield PrefixGroup(rows, depth - 1 if ended else depth)


def length_batches(
    rows: NDArray[np.intp], lengths: NDArray[Any], smallest: int
) -> Iterator[NDArray[np.intp]]:
    """Cut a group into batches of similar length with at least `smallest` rows."""
    ordered = rows[np.argsort(lengths[rows], kind="stable")]
    changes = np.flatnonzero(np.diff(lengths[ordered])) + 1
    start = 0
    for change in changes:
        if change - start >= smallest:
            yield ordered[start:change]
            start = int(change)
    yield ordered[start:]
