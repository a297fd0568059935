"""Files that the tasks of a distributed run share: a folder or an object store, by fsspec.

Arrays are .npy and .npz files, everything else is JSON; nothing is ever pickled. A file appears
complete or not at all.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

import fsspec
import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import NEW_SUFFIX
from nouncut.errors import InputError, describe_error

Options = Mapping[str, Any]
# NumPy evaluates headers as Python literals, which fails now and then in several threads at once
# (CPython 3.11).
_PARSING = Lock()


class Storage:
    """A folder of files; counts the bytes that are read and written through it.

    Parameters
    ----------
    url : str
        A folder, or a prefix that fsspec knows, such as ``s3://bucket/prefix``.
    options : mapping, optional
        What fsspec needs to open the URL, such as the endpoint of an S3 server.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.distributed.storage import Storage
    >>> storage = Storage("memory://example")
    >>> storage.write("rows.npy", np.arange(6).reshape(3, 2))
    >>> storage.read("rows.npy", 1, 3).tolist()
    [[2, 3], [4, 5]]
    """

    def __init__(self, url: str, options: Options | None = None) -> None:
        self.url, self.options = url, dict(options or {})
        self.written: dict[str, int] = {}
        self.n_read = 0

    @cached_property
    def _system(self) -> tuple[Any, str]:
        found: tuple[Any, str] = fsspec.core.url_to_fs(self.url, **self.options)
        return found

    @property
    def folder(self) -> Path | None:
        """The folder, if the files are on a file system of this machine."""
        system, root = self._system
        protocols = system.protocol
        is_local = "file" in ((protocols,) if isinstance(protocols, str) else protocols)
        return Path(root) if is_local else None

    def write(self, name: str, array: NDArray[Any]) -> None:
        """Write an array to a .npy file."""
        buffer = io.BytesIO()
        # Rows must be in one piece each, so that some of them can be read.
        np.save(buffer, np.asarray(array, order="C"), allow_pickle=False)
        self._put(name, buffer.getbuffer())

    def write_several(self, name: str, **arrays: NDArray[Any]) -> None:
        """Write arrays to one .npz file."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        self._put(name, buffer.getbuffer())

    def write_json(self, name: str, value: Any) -> None:
        """Write a value as JSON."""
        self._put(name, json.dumps(value).encode())

    def write_bytes(self, name: str, content: bytes | memoryview) -> None:
        """Write the content of a file."""
        self._put(name, content)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Read some rows of an array; those of a local file are mapped into memory."""
        if self.folder is not None:
            with self._explained(name), _PARSING:
                array: NDArray[Any] = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
            part = array[start:stop]
            self.n_read += part.nbytes
            return part
        return self._read_range(name, start, stop)

    def read_several(self, name: str) -> dict[str, NDArray[Any]]:
        """Read all arrays of a .npz file."""
        content = io.BytesIO(self.read_bytes(name))
        with self._explained(name), _PARSING, np.load(content, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}

    def read_json(self, name: str) -> Any:
        """Read a JSON file."""
        return json.loads(self.read_bytes(name))

    def read_bytes(self, name: str) -> bytes:
        """Read a whole file."""
        system, root = self._system
        with self._explained(name):
            content: bytes = system.cat_file(f"{root}/{name}")
        self.n_read += len(content)
        return content

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the finished files below a folder, and their sizes."""
        system, root = self._system
        # Others write files too.
        system.invalidate_cache(f"{root}/{folder}")
        found = system.find(f"{root}/{folder}", detail=True)
        return {
            path.rpartition(f"/{folder}/")[2]: int(info["size"])
            for path, info in found.items()
            if not path.endswith(NEW_SUFFIX)
        }

    def names(self, folder: str) -> list[str]:
        """Return the names of what is directly in a folder."""
        system, root = self._system
        path = f"{root}/{folder}".rstrip("/")
        system.invalidate_cache(path)
        if not system.exists(path):
            return []
        found = system.ls(path, detail=False)
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def size(self, name: str) -> int | None:
        """Return the size of a file; None if there is none."""
        system, root = self._system
        try:
            return int(system.info(f"{root}/{name}")["size"])
        except FileNotFoundError:
            return None

    def remove(self, folder: str) -> None:
        """Remove everything below a folder."""
        system, root = self._system
        path = f"{root}/{folder}".rstrip("/")
        if system.exists(path):
            system.rm(path, recursive=True)

    def _put(self, name: str, content: bytes | memoryview) -> None:
        system, root = self._system
        if self.folder is None:
            # An object store shows a new object when all of it has arrived.
            system.pipe_file(f"{root}/{name}", bytes(content))
        else:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # Two workers may write the same file at the same time.
            temporary = path.with_name(f"{path.name}.{uuid4().hex}{NEW_SUFFIX}")
            try:
                temporary.write_bytes(content)
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
        self.written[name] = len(content)

    def _read_range(self, name: str, start: int, stop: int | None) -> NDArray[Any]:
        """Read some rows of an array: its beginning, and the rows if they are not in there."""
        system, root = self._system
        path = f"{root}/{name}"
        with self._explained(name), _PARSING:
            beginning = system.cat_file(path, start=0, end=_BEGINNING_BYTES)
            head = io.BytesIO(beginning)
            version = np.lib.format.read_magic(head)
            reader = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else (np.lib.format.read_array_header_2_0)
            )
            shape, fortran, dtype = reader(head)
            if fortran or dtype.hasobject:
                raise ValueError("it is not a plain array")
            rows = range(shape[0])[start:stop]
            width = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
            begin = head.tell() + rows.start * width
            end = begin + len(rows) * width
            # Object stores refuse a range of no bytes.
            if begin == end or end <= len(beginning):
                content = beginning[begin:end]
            else:
                content = system.cat_file(path, start=begin, end=end)
        self.n_read += len(content)
        return np.frombuffer(content, dtype).reshape(len(rows), *shape[1:])

    def _explained(self, name: str) -> _Explained:
        return _Explained(f"{self.url.rstrip('/')}/{name}")


# The header of an array, and all of a small one: a request for them takes as long as for less.
_BEGINNING_BYTES = 2**16


class _Explained:
    """Turns errors of reading into an `InputError` that names the file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError | ValueError | EOFError) and not isinstance(error, InputError):
            raise InputError(
                f"{self.path} is missing or damaged ({describe_error(error)}). Remove the "
                "folder work of its run, and run the command again."
            ) from error
