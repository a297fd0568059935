"""Sorting token sequences so that a causal text tower computes nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Marks the places after the end of a sequence; no token has this number.
NO_TOKEN = -1


@dataclass(frozen=True)
class PrefixGroup:
    """Sequences that begin with the same tokens.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        The sequences, by their row among the distinct ones.
    depth : int
        How many tokens they share; every sequence has at least one more.
    """

    rows: NDArray[np.intp]
    depth: int


def cut_sequences(
    tokens: NDArray[Any], ends: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Cut token sequences after their ends and drop repeated ones.

    Parameters
    ----------
    tokens : ndarray of shape (n, length)
        Token numbers, padded.
    ends : ndarray of shape (n,)
        Position of the last token that counts.

    Returns
    -------
    sequences : ndarray of shape (n_distinct, longest)
        Distinct sequences in lexicographic order, filled up with `NO_TOKEN`.
    inverse : ndarray of shape (n,)
        Where each sequence went.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.models.text_batches import cut_sequences
    >>> tokens = np.array([[7, 5, 9, 9], [7, 3, 4, 9], [7, 5, 9, 9]])
    >>> sequences, inverse = cut_sequences(tokens, np.array([2, 3, 2]))
    >>> sequences
    array([[ 7,  3,  4,  9],
           [ 7,  5,  9, -1]])
    >>> inverse
    array([1, 0, 1])
    """
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
    """Group sequences by the tokens they begin with.

    Parameters
    ----------
    sequences : ndarray of shape (n, longest)
        What `cut_sequences` returned.
    smallest : int
        A longer shared beginning splits off a group of its own only when so many sequences have
        it: small groups cost more in small matrix products than they save.

    Yields
    ------
    PrefixGroup
        Every sequence is in exactly one group.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.models.text_batches import prefix_groups
    >>> sequences = np.array([[1, 2, 3, 9], [1, 2, 4, 9], [1, 5, 9, -1]])
    >>> [(group.rows.tolist(), group.depth) for group in prefix_groups(sequences, smallest=2)]
    [([0, 1], 2), ([2], 1)]
    """
    if len(sequences):
        yield from _split(sequences, 0, len(sequences), 0, smallest)


def _split(
    sequences: NDArray[np.int64], start: int, stop: int, depth: int, smallest: int
) -> Iterator[PrefixGroup]:
    """Split rows that share `depth` tokens by their next one."""
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
        # A sequence that ends within the shared tokens still needs one of its own to be read at.
        ended = (sequences[rows, depth] == NO_TOKEN).any()
        yield PrefixGroup(rows, depth - 1 if ended else depth)


def length_batches(
    rows: NDArray[np.intp], lengths: NDArray[Any], smallest: int
) -> Iterator[NDArray[np.intp]]:
    """Cut a group into batches of nearly equal lengths.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Sequences.
    lengths : ndarray of shape (n_distinct,)
        Length of every distinct sequence.
    smallest : int
        A batch ends where the length changes, once it holds so many sequences.

    Yields
    ------
    ndarray of shape (batch,)
        Rows, the shortest sequences first.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.models.text_batches import length_batches
    >>> lengths = np.array([4, 3, 3, 5, 9])
    >>> [batch.tolist() for batch in length_batches(np.arange(5), lengths, smallest=2)]
    [[1, 2], [0, 3], [4]]
    """
    ordered = rows[np.argsort(lengths[rows], kind="stable")]
    changes = np.flatnonzero(np.diff(lengths[ordered])) + 1
    start = 0
    for change in changes:
        if change - start >= smallest:
            yield ordered[start:change]
            start = int(change)
    yield ordered[start:]
