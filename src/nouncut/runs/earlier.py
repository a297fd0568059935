"""Runs that need not be made, because they have been made."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from nouncut import __version__
from nouncut.errors import InputError
from nouncut.runs.collection import Collection
from nouncut.runs.contents import texts_of
from nouncut.runs.run import Run, open_run


def content_digest(collection: Collection, question: str) -> str:
    """Return what stands for everything that decides a result.

    Parameters
    ----------
    collection : Collection
        The images.
    question : str
        What was asked: `Settings.digest`.

    Returns
    -------
    str
        Hexadecimal.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.runs.collection import Collection
    >>> from nouncut.runs.earlier import content_digest
    >>> rows = Collection("features", ("a", "b"), np.eye(2, dtype=np.float32), None)
    >>> content_digest(rows, "into 2") == content_digest(rows, "into 3")
    False
    """
    chosen = collection.model
    found = hashlib.sha256(
        repr((__version__, question, chosen and chosen.encoder.fingerprint)).encode()
    )
    for path in texts_of(collection.paths):
        found.update(path.encode() + b"\0")
    for file in collection.skipped:
        found.update(repr((texts_of((file.path,)), file.reason)).encode())
    if collection.hashes is None:
        found.update(np.ascontiguousarray(collection.visual).tobytes())
    else:
        found.update("".join(collection.hashes).encode())
    return found.hexdigest()


def earlier_run(directory: Path, content: str, n_encoded: int) -> Run | None:
    """Return the run that is there already, if it is the one that was asked for.

    Parameters
    ----------
    directory : Path
        The run directory.
    content : str
        From `content_digest`.
    n_encoded : int
        How many images went through the model this time.

    Returns
    -------
    Run or None
        The finished run, whose manifest tells of this time's encoding; None if there is no such
        run.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.runs.earlier import earlier_run
    >>> earlier_run(Path("no/such/folder"), "8d2f", 0) is None
    True
    """
    try:
        run = open_run(directory)
    except InputError:
        return None
    if run.manifest.get("content") != content:
        return None
    return replace(run, manifest=run.manifest | {"n_encoded": n_encoded})
