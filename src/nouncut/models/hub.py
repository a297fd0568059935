"""The model hub: what was downloaded before, whether the hub answers, and downloads.

The client (huggingface_hub) takes half a second to import. Only downloads import it.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nouncut.compute.files import atomic_file, cache_folder
from nouncut.compute.progress import Progress
from nouncut.errors import ModelError

SECONDS_TO_ANSWER = 2.0
_SECONDS_REMEMBERED = 24 * 3600.0
_POLL_SECONDS = 0.5
_MEGABYTE = 1e6
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REMEDY = (
    "choose as `model` the folder of a model, or the embedded model 'mini', which needs no download"
)


def hub_cache() -> Path:
    """Return the folder of downloads, which other programs share."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if chosen := os.environ.get(variable):
            return Path(os.path.expandvars(chosen)).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or os.path.join(caches, "huggingface")
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def cached_snapshot(name: str, revision: str = "main") -> Path | None:
    """Return the folder of a repository that was downloaded before, perhaps in part."""
    root = hub_cache() / f"models--{name.replace('/', '--')}"
    try:
        commit = (root / "refs" / revision).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    folder = root / "snapshots" / commit
    return folder if _COMMIT.fullmatch(commit) and folder.is_dir() else None


def is_offline() -> bool:
    """Tell whether the user has forbidden downloads."""
    return any(
        os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE")
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def hub_answers(name: str, seconds: float = SECONDS_TO_ANSWER) -> bool:
    """Tell whether the hub shows a repository within some seconds."""
    answers: list[bool] = []
    # A name server that does not answer cannot be interrupted, only left behind.
    thread = threading.Thread(target=lambda: answers.append(_asks(name, seconds)), daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(answers and answers[0])


def remember_no_answer() -> None:
    """Note that the hub did not answer; failures to write do not matter."""
    with suppress(OSError):
        path = _no_answer_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, sync=False) as file:
            file.write(f"{int(time.time())}\n".encode())


def hours_since_no_answer() -> float | None:
    """Return the hours since the hub did not answer; None if that is forgotten after a day."""
    try:
        age = time.time() - float(_no_answer_file().read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return age / 3600 if 0 <= age < _SECONDS_REMEMBERED else None


def list_repository(name: str) -> dict[str, int]:
    """Ask the hub for the files of a repository and their sizes in bytes."""
    with _explained(name):
        from huggingface_hub import HfApi

        info = HfApi(endpoint=_endpoint()).model_info(name, files_metadata=True)
        return {file.rfilename: file.size or 0 for file in info.siblings or ()}


def download(name: str, files: Collection[str], n_bytes: int, progress: Progress | None) -> Path:
    """Download files of a repository and return its folder."""
    with _explained(name), _shown(name, n_bytes, progress):
        from huggingface_hub import snapshot_download

        # Names of files are patterns here; brackets and the like would be special.
        patterns = [re.sub(r"[\[\]*?]", "?", file) for file in sorted(files)]
        folder: Any = snapshot_download(
            name, endpoint=_endpoint(), cache_dir=hub_cache(), allow_patterns=patterns
        )
        return Path(folder)


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _asks(name: str, seconds: float) -> bool:
    import urllib.request
    from http.client import HTTPException

    request = urllib.request.Request(
        f"{_endpoint()}/{name}/resolve/main/config.json", method="HEAD"
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds):
            return True
    except (OSError, ValueError, HTTPException):
        return False


def _no_answer_file() -> Path:
    return cache_folder() / "hub-did-not-answer"


@contextmanager
def _explained(name: str) -> Iterator[None]:
    if is_offline():
        raise ModelError(
            f"The model {name!r} is not on this machine, and HF_HUB_OFFLINE forbids downloads: "
            f"unset it, or {_REMEDY}."
        )
    try:
        yield
    except Exception as error:  # the hub's client raises errors of several libraries
        raise ModelError(
            f"The model {name!r} is not on this machine and could not be downloaded from the hub "
            f"({type(error).__name__}). Check the name and the connection, or {_REMEDY}."
        ) from error


@contextmanager
def _shown(name: str, n_bytes: int, progress: Progress | None) -> Iterator[None]:
    """Report a download in megabytes; without `progress` the client draws its own bars."""
    if progress is None:
        yield
        return
    from huggingface_hub import utils

    bars: Any = utils

    stage, total = f"downloading {name} (MB)", max(1, round(n_bytes / _MEGABYTE))
    blobs = hub_cache() / f"models--{name.replace('/', '--')}" / "blobs"
    finished = threading.Event()

    def poll() -> None:
        before = _folder_bytes(blobs)
        while not finished.wait(_POLL_SECONDS):
            done = round((_folder_bytes(blobs) - before) / _MEGABYTE)
            progress(stage, min(max(done, 0), total - 1), total)

    had_bars = not bars.are_progress_bars_disabled()
    bars.disable_progress_bars()
    watcher = threading.Thread(target=poll, daemon=True)
    progress(stage, 0, total)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
        if had_bars:
            bars.enable_progress_bars()
    progress(stage, total, total)


def _folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total
