"""Files that appear whole or not at all.

A file is first written beside its place, under a name that ends in `NEW_SUFFIX`; `install` then
puts it there in one step.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nouncut.runs.layout import NEW_SUFFIX

_BYTES_AT_ONCE = 16 * 2**20


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is to take the place of `path`, and have its bytes on the disk at the end.

    Parameters
    ----------
    path : Path
        The place.

    Yields
    ------
    binary file
        What is written to it waits beside its place for `install`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.runs.files import install, new_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.txt")
    ...     with new_file(path) as file:
    ...         _ = file.write(b"text")
    ...     before = path.exists()
    ...     install(path)
    ...     before, path.read_bytes()
    (False, b'text')
    """
    with waiting(path).open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def waiting(path: Path) -> Path:
    """Return where a file waits for its place.

    Parameters
    ----------
    path : Path
        The place.

    Returns
    -------
    Path
        Its sibling.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.runs.files import waiting
    >>> waiting(Path("manifest.json")).name
    'manifest.json.nouncut-new'
    """
    return path.with_name(path.name + NEW_SUFFIX)


def install(path: Path) -> None:
    """Put the file that waits for a place there, instead of what may be there now.

    Parameters
    ----------
    path : Path
        The place.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.runs.files import install, waiting
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.txt")
    ...     _ = path.write_text("old"), waiting(path).write_text("new")
    ...     install(path)
    ...     path.read_text()
    'new'
    """
    os.replace(waiting(path), path)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array in NumPy's format, to wait for its place.

    Parameters
    ----------
    path : Path
        The place.
    array : ndarray
        May be memory-mapped; it is written in pieces.

    Raises
    ------
    ValueError
        If it holds Python objects.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nouncut.runs.files import waiting, write_array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_array(Path(folder, "a.npy"), np.arange(3))
    ...     np.load(waiting(Path(folder, "a.npy"))).tolist()
    [0, 1, 2]
    """
    if array.dtype.hasobject:
        raise ValueError(f"{path.stem!r} holds Python objects, and arrays are never pickled.")
    flat = np.asarray(array, order="C").reshape(-1)
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    step = max(1, _BYTES_AT_ONCE // max(1, array.itemsize))
    with new_file(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        # np.save would not tell a full disk from other errors.
        for start in range(0, len(flat), step):
            file.write(flat[start : start + step].tobytes())


def remove_waiting(folder: Path) -> None:
    """Remove what waits for its place in a folder: the leftovers of a writer that did not end.

    Parameters
    ----------
    folder : Path
        The folder; nothing is done where it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.runs.files import remove_waiting, waiting
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("a"), waiting(Path(folder, "b.txt")).touch()
    ...     remove_waiting(Path(folder))
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.txt']
    """
    for path in folder.glob(f"*{NEW_SUFFIX}"):
        with suppress(FileNotFoundError):
            path.unlink()


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlive a power cut.

    Parameters
    ----------
    folder : Path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.runs.files import sync_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sync_folder(Path(folder))
    """
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
