"""Vectors on disk, found by a hash of what they were computed from."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

from nouncut.compute.files import AnyPath, cache_folder
from nouncut.store.database import (
    DATABASE_NAME,
    add_space,
    create_database,
    find_space,
    insert_rows,
    reading,
    select_rows,
    split_keys,
    transaction,
)
from nouncut.store.file_hashes import FILES_NAME, forget_hashes
from nouncut.store.joined import (
    damaged_files,
    joined_files,
    keep_joined,
    note_use,
    read_joined,
    remove_all_joined,
    remove_joined,
)
from nouncut.store.migration import (
    are_shards_damaged,
    migrate_shards,
    remove_shards,
    shard_files,
)
from nouncut.store.prune import prune_rows, read_usage
from nouncut.store.read_rows import USE_RESOLUTION_SECONDS, note_use_of_space, read_rows
from nouncut.store.repair import drop_damage, find_damage
from nouncut.store.vectors import check_rows, check_space, convert_rows


def text_key(text: str) -> str:
    """Return the key of a text; the key of an image is the hash of its file."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def default_root() -> Path:
    """Return the folder of the store: in `NOUNCUT_CACHE`, or in the user's cache folder."""
    return cache_folder() / "features"


@dataclass(frozen=True)
class SpaceInfo:
    """What is stored in a space."""

    name: str
    n_rows: int
    dim: int
    dtype: str
    n_bytes: int
    last_used: datetime


class FeatureStore:
    """Vectors on disk, found by a hash of what they were computed from.

    A *space* is a set of vectors of one length that were computed in the same way. Its name must
    change whenever the same content would get another vector. A *key* stands for the content.

    Several processes and threads may use a store at once. A process that is killed loses only the
    batch that it was appending.

    Parameters
    ----------
    root : path, optional
        Folder of the store, created if it is missing; by default `NOUNCUT_CACHE` or the user's
        cache folder. Prefer a local drive: on network drives the store depends on their file locks.

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

    def __init__(self, root: AnyPath | None = None) -> None:
        self.root = default_root() if root is None else Path(root)
        create_database(self.root)
        migrate_shards(self.root)

    def __repr__(self) -> str:
        return f"FeatureStore({os.fspath(self.root)!r})"

    def missing(self, space: str, keys: Sequence[str]) -> list[int]:
        """Find the keys whose vectors have to be computed.

        Parameters
        ----------
        space : str
            Name of the space.
        keys : sequence of str
            Keys to look up.

        Returns
        -------
        list of int
            Positions of keys that are not stored; a repeated key is listed once.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).missing("clip", ["cat", "dog", "cat"])
        [0, 1]
        """
        first = {key: position for position, key in reversed(list(enumerate(keys)))}
        with reading(self.root) as db:
            found = find_space(db, space)
            for part in split_keys(keys):
                for (key,) in select_rows(db, "key", found, part) if found else ():
                    first.pop(key, None)
        return sorted(first.values())

    def append(
        self, space: str, keys: Sequence[str], rows: ArrayLike, *, dtype: str | None = None
    ) -> int:
        """Store vectors: all of them, or none after an error.

        Parameters
        ----------
        space : str
            Name of the space, which is created if it is missing.
        keys : sequence of str
            One key per row. A key that is stored already, perhaps by another process in the
            meantime, keeps its vector.
        rows : array-like of shape (n_keys, dim)
            Finite vectors.
        dtype : {"float32", "float16"}, optional
            How the vectors of a new space are stored; "float32" by default.

        Returns
        -------
        int
            Number of new rows.

        Raises
        ------
        ValueError
            If the rows do not fit the space.
        OutputError
            If the disk is full or cannot be written to. Rows stored earlier are intact.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = FeatureStore(folder)
        ...     store.append("clip", ["cat"], [[1.0, 0.0]]), store.append("clip", ["cat"], [[9, 9]])
        (1, 0)
        """
        checked = check_rows(keys, rows, dtype)
        if not len(checked):
            return 0
        dim = checked.shape[1]
        with transaction(self.root) as db:
            found = find_space(db, space) or add_space(db, space, dtype or "float32", dim)
            check_space(found, dtype, dim)
            encoded = (row.tobytes() for row in convert_rows(checked, found.dtype))
            return insert_rows(db, found, zip(keys, encoded, strict=True), time.time())

    def read(
        self, space: str, keys: Sequence[str], *, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Read stored vectors.

        Parameters
        ----------
        space : str
            Name of the space.
        keys : sequence of str
            Keys in any order, possibly repeated.
        out : ndarray of shape (n_keys, dim), optional
            Array to write the vectors to, for instance a memory-mapped file.

        Returns
        -------
        ndarray of shape (n_keys, dim)
            Vectors in the order of `keys`: `out`, or a new array of float32.

        Raises
        ------
        KeyError
            If some keys are not stored.
        OutputError
            If some rows are damaged.

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
        found = read_rows(self.root, space, keys, out)
        if found.vectors is None or found.missing:
            missing = list(dict.fromkeys(keys[position] for position in found.missing))
            shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
            raise KeyError(
                f"{len(missing)} of {len(keys)} keys are not stored in space {space!r}: {shown}"
            )
        return found.vectors

    def read_joined(self, space: str, texts: Sequence[str]) -> NDArray[Any] | None:
        """Read the vectors of a long list of texts that `join` has put side by side.

        Parameters
        ----------
        space : str
            Name of the space.
        texts : sequence of str
            The list.

        Returns
        -------
        ndarray of shape (n_texts, dim) or None
            Read-only float32; None if there is no intact copy, so that `read` is needed.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).read_joined("clip", ["cat", "dog"])
        """
        name = _list_name(space, texts)
        rows = read_joined(self.root, name, len(texts))
        if rows is not None and note_use(self.root, name, USE_RESOLUTION_SECONDS):
            note_use_of_space(self.root, space)
        return rows

    def join(self, space: str, texts: Sequence[str], rows: NDArray[Any]) -> None:
        """Keep a copy of the vectors of a long list of texts for `read_joined`.

        Parameters
        ----------
        space : str
            Name of the space.
        texts : sequence of str
            The list.
        rows : ndarray of shape (n_texts, dim)
            What `read` returns for the list.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = FeatureStore(folder)
        ...     store.join("clip", ["cat", "dog"], np.eye(2))
        ...     print(store.read_joined("clip", ["cat", "dog"]))
        [[1. 0.]
         [0. 1.]]
        """
        keep_joined(self.root, _list_name(space, texts), rows)

    def spaces(self) -> list[SpaceInfo]:
        """List the spaces.

        Returns
        -------
        list of SpaceInfo
            Number of rows, size and date of last use of each space, sorted by name.

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
        infos = []
        for space, group in groupby(read_usage(self.root), lambda part: part.space):
            parts = list(group)
            n_rows = sum(part.n_rows for part in parts)
            used = datetime.fromtimestamp(max(part.used for part in parts), UTC)
            n_bytes = n_rows * space.row_bytes
            infos.append(SpaceInfo(space.name, n_rows, space.dim, space.dtype, n_bytes, used))
        return infos

    def size(self) -> int:
        """Measure the disk space of the store.

        Returns
        -------
        int
            Bytes.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).size() < 200_000
        True
        """
        total = 0
        files = [*self.root.glob(f"{DATABASE_NAME}*"), self.root / FILES_NAME]
        for path in (*files, *joined_files(self.root), *shard_files(self.root)):
            # Another process may remove the file meanwhile.
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    def prune(
        self,
        *,
        spaces: Iterable[str] = (),
        unused_for: timedelta | None = None,
        max_bytes: int | None = None,
    ) -> int:
        """Remove vectors and give their disk space back.

        Uses are noted per block of 4,096 rows, which are removed together. Hashes of files and the
        copies that `join` made are removed as well: files and rows are then read again.

        Parameters
        ----------
        spaces : iterable of str, optional
            Spaces to remove.
        unused_for : timedelta, optional
            Remove blocks that were neither written nor read for this long.
        max_bytes : int, optional
            Remove blocks, least recently used first, until the vectors take no more than this.

        Returns
        -------
        int
            Bytes given back to the file system.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = FeatureStore(folder)
        ...     _ = store.append("clip", ["cat"], [[1.0, 0.0]])
        ...     _ = store.prune(spaces=["clip"])
        ...     store.spaces()
        []
        """
        before = self.size()
        prune_rows(self.root, set(spaces), unused_for, max_bytes)
        remove_shards(self.root)
        remove_all_joined(self.root)
        forget_hashes(self.root)
        return before - self.size()

    def check(self) -> list[str]:
        """Compare all rows with their checksums.

        Returns
        -------
        list of str
            One sentence per kind of damage; empty if nothing is damaged.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).check()
        []
        """
        damage, copies = find_damage(self.root), damaged_files(self.root)
        return [*damage.problems, *_file_problems(copies, are_shards_damaged(self.root))]

    def repair(self) -> list[str]:
        """Remove damaged rows: they are then missing and will be computed again.

        Returns
        -------
        list of str
            What was damaged, in the words of `check`.

        Examples
        --------
        >>> import tempfile
        >>> from nouncut.store.store import FeatureStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     FeatureStore(folder).repair()
        []
        """
        damage, copies = find_damage(self.root), damaged_files(self.root)
        shards = are_shards_damaged(self.root)
        drop_damage(self.root, damage)
        remove_joined(copies)
        if shards:
            remove_shards(self.root)
        return [*damage.problems, *_file_problems(copies, shards)]


def _list_name(space: str, texts: Sequence[str]) -> str:
    return text_key("\0".join((space, *texts)))


def _file_problems(copies: Sequence[Path], shards: bool) -> list[str]:
    problems = [f"{len(copies)} joined list(s) are damaged"] if copies else []
    return [*problems, "features of nouncut 0.1.0 are damaged"] if shards else problems
