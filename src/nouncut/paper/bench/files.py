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
    """Write a file in one step; folders are made."""
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
    """Write JSON in one step."""
    write_whole(path, (json.dumps(value, indent=2) + "\n").encode())


def write_whole_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array in NumPy's format in one step."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    write_whole(path, stream.getvalue())


def slug(name: str) -> str:
    """Return a name that any file system takes."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")
    return plain[-_SLUG_LENGTH:].strip("-.") or "unnamed"
