"""A finished run, copied from the client to the URL that is its output."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

import fsspec

from nouncut.compute.files import NEW_SUFFIX
from nouncut.distributed.storage import Options
from nouncut.errors import OutputError, describe_error
from nouncut.runs.directory import LOCK, MANIFEST
from nouncut.runs.manifest_fields import FILES
from nouncut.runs.run import Run


def check_destination(url: str, digest: str, options: Options | None, *, replace: bool) -> None:
    """Refuse a URL that holds a run of other images or settings, or that cannot be reached."""
    try:
        system, root = fsspec.core.url_to_fs(url, **(options or {}))
        known = json.loads(system.cat_file(f"{root}/{MANIFEST}")).get("digest")
    except FileNotFoundError:
        return
    except (OSError, ValueError, AttributeError, ImportError) as error:
        raise OutputError(
            f"{url} cannot be used as `output` ({describe_error(error)}). Check the URL and the "
            "credentials."
        ) from error
    if known != digest and not replace:
        raise OutputError(
            f"{url} holds a run of other images or settings. Choose another `output`, or pass "
            "`replace=True`."
        )


def upload_run(run: Run, url: str, options: Options | None) -> None:
    """Copy a run directory to a URL; its manifest comes last, so that a run there is complete."""
    try:
        system, root = fsspec.core.url_to_fs(url, **(options or {}))
        manifest = (run.directory / MANIFEST).read_bytes()
        known = _known_manifest(system, root)
        if known == manifest:
            return
        if known is not None:
            _remove_old(system, root, known)
        for path in sorted(run.directory.rglob("*")):
            name = path.relative_to(run.directory).as_posix()
            is_left_out = name == MANIFEST or path.name == LOCK or name.endswith(NEW_SUFFIX)
            if path.is_file() and not is_left_out:
                system.put_file(os.fspath(path), f"{root}/{name}")
        system.pipe_file(f"{root}/{MANIFEST}", manifest)
    except (OSError, ValueError) as error:
        raise OutputError(
            f"The run is finished, but it could not be copied to {url} ({describe_error(error)}). "
            f"It is in {run.directory}; the same command copies it again."
        ) from error


def _known_manifest(system: Any, root: str) -> bytes | None:
    try:
        found: bytes = system.cat_file(f"{root}/{MANIFEST}")
    except FileNotFoundError:
        return None
    return found


def _remove_old(system: Any, root: str, manifest: bytes) -> None:
    """Remove the files of the run that is there, its manifest first; others stay."""
    system.rm_file(f"{root}/{MANIFEST}")
    files = json.loads(manifest).get(FILES) or {}
    for name in files:
        if ".." not in name.split("/"):
            with suppress(FileNotFoundError):
                system.rm_file(f"{root}/{name}")
