"""The store as the rest of the house sees it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

from nouncut.store import housekeeping
from nouncut.store.housekeeping import SpaceInfo
from nouncut.store.index import create_index
from nouncut.store.place import default_root
from nouncut.store.reading import find_missing, read_rows
from nouncut.store.writing import append_rows


class FeatureStore:
    """Vectors on disk, found by what they were computed from.

    A *space* is a set of vectors of one length, all computed in the same way; its name should
    change whenever the same content would get another vector. A *key* stands for the content.

    Any number of processes and threads may use a store at once, and a process may be killed at
    any moment: rows reach the disk before the index knows of them.

    Parameters
    ----------
    root : path, optional
        The store's folder, made where it is missing; `default_root` by default. Prefer a local
        drive: on network drives it is as safe as their file locks are.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from nouncut.store.store import FeatureStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FeatureStore(folder)
    ...     _ = store.append("clip", ["cat", "dog"], np.array([[1.0, 0.0], [0.0, 1.0]]))
    ...     print(store.missing("clip", ["dog", "cow"]))
    ...     print(store.read("clip", ["dog", "cat"]))
    [1]
    [[0. 1.]
     [1. 0.]]
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = default_root() if root is None else Path(root)
        create_index(self.root)

    def __repr__(self) -> str:
        return f"FeatureStore({os.fspath(self.root)!r})"

    def missing(self, space: str, keys: Sequence[str]) -> list[int]:
        """Return what has to be computed still.

        Parameters
        ----------
        space : str
            The space.
        keys : sequence of str
            The keys wanted.

        Returns
        -------
        list of int
            Positions in `keys` of those that are not stored; of equal keys only the first.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).missing("clip", ["cat", "dog", "cat"])
        [0, 1]
        """
        return find_missing(self.root, space, keys)

    def append(
        self, space: str, keys: Sequence[str], rows: ArrayLike, *, dtype: str | None = None
    ) -> int:
        """Store vectors: all of them, or none where something fails.

        Parameters
        ----------
        space : str
            The space; made where it is missing.
        keys : sequence of str
            One per row. Keys that are stored already, perhaps by another process in the
            meantime, keep the vector they have.
        rows : array-like of shape (n_keys, dim)
            Finite vectors.
        dtype : {"float32", "float16"}, optional
            How the vectors of a new space are stored; "float32" by default.

        Returns
        -------
        int
            How many rows were new.

        Raises
        ------
        ValueError
            If the rows do not suit the space.
        OutputError
            If the disk is full or cannot be written to. What was stored earlier is intact.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = FeatureStore(folder)
        ...     store.append("clip", ["cat"], [[1.0, 0.0]]), store.append("clip", ["cat"], [[9, 9]])
        (1, 0)
        """
        return append_rows(self.root, space, keys, rows, dtype)

    def read(
        self, space: str, keys: Sequence[str], *, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return stored vectors.

        Parameters
        ----------
        space : str
            The space.
        keys : sequence of str
            The keys wanted, in any order, repeated or not.
        out : ndarray of shape (n_keys, dim), optional
            Where to put the vectors, for instance a memory-mapped file.

        Returns
        -------
        ndarray of shape (n_keys, dim)
            The vectors in the order of `keys`: `out`, or a new array in float32.

        Raises
        ------
        KeyError
            If some are not stored.
        OutputError
            If some were damaged on the disk.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).read("clip", ["cat"])
        Traceback (most recent call last):
        ...
        KeyError: "1 of 1 keys are not stored in space 'clip': cat"
        """
        return read_rows(self.root, space, keys, out)

    def spaces(self) -> list[SpaceInfo]:
        """Return what is stored, space by space.

        Returns
        -------
        list of SpaceInfo
            Sorted by name.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = FeatureStore(folder)
        ...     _ = store.append("clip", ["cat"], [[1.0, 0.0]])
        ...     [(space.name, space.n_rows, space.n_bytes) for space in store.spaces()]
        [('clip', 1, 8)]
        """
        return housekeeping.list_spaces(self.root)

    def size(self) -> int:
        """Return how many bytes the store takes on the disk, its index included.

        Returns
        -------
        int
            Bytes.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).size() < 100_000
        True
        """
        return housekeeping.measure(self.root)

    def prune(
        self,
        *,
        spaces: Iterable[str] = (),
        unused_for: timedelta | None = None,
        max_bytes: int | None = None,
    ) -> int:
        """Remove vectors and give their disk space back.

        Apart from whole spaces, what was used least recently goes first, one file of vectors
        (64 MB or less) at a time. Leftovers of killed processes are removed in any case.

        Parameters
        ----------
        spaces : iterable of str, optional
            Spaces to remove.
        unused_for : timedelta, optional
            Remove what was neither written nor read for so long.
        max_bytes : int, optional
            Remove until the vectors take no more than this.

        Returns
        -------
        int
            Bytes given back.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = FeatureStore(folder)
        ...     _ = store.append("clip", ["cat"], [[1.0, 0.0]])
        ...     store.prune(spaces=["clip"]), store.spaces()
        (8, [])
        """
        return housekeeping.prune(self.root, set(spaces), unused_for, max_bytes)

    def check(self) -> list[str]:
        """Compare everything stored with its checksums.

        Returns
        -------
        list of str
            What is wrong; empty where all is well.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).check()
        []
        """
        return housekeeping.check(self.root)

    def repair(self) -> list[str]:
        """Forget what was damaged, so that it is missing and will be computed again.

        Returns
        -------
        list of str
            What was wrong, as `check` tells it.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).repair()
        []
        """
        return [str(problem) for problem in housekeeping.drop_damage(self.root)]
