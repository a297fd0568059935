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
    """Return what stands for everything that decides a result."""
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
    """Return the run that is there already, if it is the one that was asked for."""
    try:
        run = open_run(directory)
    except InputError:
        return None
    if run.manifest.get("content") != content:
        return None
    return replace(run, manifest=run.manifest | {"n_encoded": n_encoded})
