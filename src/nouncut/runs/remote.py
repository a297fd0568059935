"""Runs at a URL: copied to a folder here before anything reads them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from nouncut.compute.files import AnyPath, cache_folder
from nouncut.errors import InputError, describe_error
from nouncut.runs.directory import MANIFEST

_COPIES = "runs"


def is_url(path: AnyPath) -> bool:
    """Tell whether a path is a URL that fsspec opens."""
    return "://" in os.fspath(path)


def local_copy(url: str, storage_options: Mapping[str, Any] | None = None) -> Path:
    """Copy a run at a URL to the user's cache, unless it is there already.

    Edits stay in the copy. A new run at the same URL gets a copy of its own.

    Parameters
    ----------
    url : str
        The run directory, such as ``s3://bucket/run``.
    storage_options : mapping, optional
        What fsspec needs to open the URL.

    Returns
    -------
    Path
        The copy.

    Raises
    ------
    InputError
        If there is no finished run, or if it cannot be read.
    """
    address = url.rstrip("/")
    try:
        import fsspec
    except ImportError as error:
        raise InputError(f"{address} needs fsspec: pip install 'nouncut[distributed]'.") from error
    try:
        system, root = fsspec.core.url_to_fs(address, **(storage_options or {}))
        manifest = json.loads(system.cat_file(f"{root}/{MANIFEST}"))
        key = hashlib.sha256(f"{address} {manifest['id']}".encode()).hexdigest()[:16]
        place = cache_folder() / _COPIES / f"{PurePosixPath(root).name or 'run'}-{key}"
        if not (place / MANIFEST).is_file():
            _copy(system, root, place)
    except FileNotFoundError as error:
        raise InputError(
            f"There is no finished run at {address}: it has no {MANIFEST}. Pass the URL that was "
            "the output of a run."
        ) from error
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        raise InputError(
            f"The run at {address} cannot be read ({describe_error(error)}). Check the URL and the "
            "credentials."
        ) from error
    return place


def _copy(system: Any, root: str, place: Path) -> None:
    """Copy all files; the folder appears when it is complete."""
    new = place.with_name(f"{place.name}.{uuid4().hex}.new")
    try:
        for path in system.find(root):
            inside = PurePosixPath(path).relative_to(root)
            if ".." in inside.parts:
                raise ValueError(f"{path} is not inside the run")
            target = new.joinpath(*inside.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(path, str(target))
        new.rename(place)
    except OSError:
        if not (place / MANIFEST).is_file():  # another process may have been faster
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
