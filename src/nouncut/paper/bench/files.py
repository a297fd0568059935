"""Small files that appear whole or not at all."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SLUG_LENGTH = 60


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step; folders are made.

    Parameters
    ----------
    path : Path
        The file; what was there is replaced.
    content : bytes
        What it holds.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.paper.bench.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "new", "a.txt"), b"text")
    ...     [path.name for path in Path(folder, "new").iterdir()]
    ['a.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own, so that processes at work on the same table do not meet.
    handle, part = tempfile.mkstemp(prefix=".part-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def write_whole_json(path: Path, value: Any) -> None:
    """Write JSON in one step.

    Parameters
    ----------
    path : Path
        The file.
    value : object
        What JSON can hold.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.paper.bench.files import write_whole_json
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole_json(Path(folder, "a.json"), {"acc": 0.9})
    ...     Path(folder, "a.json").read_text().split()
    ['{', '"acc":', '0.9', '}']
    """
    write_whole(path, (json.dumps(value, indent=2) + "\n").encode())


def write_whole_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array in NumPy's format in one step.

    Parameters
    ----------
    path : Path
        The file.
    array : ndarray
        Holds no Python objects.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nouncut.paper.bench.files import write_whole_array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole_array(Path(folder, "a.npy"), np.arange(3))
    ...     np.load(Path(folder, "a.npy")).tolist()
    [0, 1, 2]
    """
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    write_whole(path, stream.getvalue())


def slug(name: str) -> str:
    """Return a name that any file system takes.

    Parameters
    ----------
    name : str
        Of a data set or a model.

    Returns
    -------
    str
        Letters, digits, points and hyphens; the end of the name where it is long.

    Examples
    --------
    >>> from nouncut.paper.bench.files import slug
    >>> slug("ViT-B/32"), slug("../<b>")
    ('ViT-B-32', 'b')
    """
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")
    return plain[-_SLUG_LENGTH:].strip("-.") or "unnamed"
