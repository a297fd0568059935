"""The run that the explorer shows, always with the edits that are in its log."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import RLock, Thread, main_thread
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nouncut.errors import NouncutError
from nouncut.report.shown_images import common_folder
from nouncut.runs.directory import MANIFEST
from nouncut.runs.edit_log import EDITS, LoggedEdit
from nouncut.runs.editing import Plan
from nouncut.runs.explain import RunEvidence
from nouncut.runs.run import Run, open_run

if TYPE_CHECKING:
    from numpy.typing import NDArray


class StaleError(NouncutError):
    """The page shows groups that another writer has edited since."""


class View:
    """A run with the edits of one moment, and what several requests need of it.

    The page shows the sample of a large run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run.sample or run

    @property
    def version(self) -> str:
        """Changes with every edit, and with every run in the same directory."""
        return version_of(self.run, self.run.edits)

    @cached_property
    def evidence(self) -> RunEvidence:
        """What says why images are where they are."""
        return RunEvidence(self.run)


class Session:
    """The open run; several threads may use it.

    A view does not change, so that it can be read without a lock. Every request looks whether the
    files of the run have changed since the last one.
    """

    def __init__(self, directory: Path) -> None:
        self._lock = RLock()
        self._files = _file_versions(directory)
        self._view = View(open_run(directory))
        self.directory = self._view.run.directory
        self._of_images: tuple[object, _Files] | None = None

    def warm_up(self) -> None:
        """Load in the background what the first search and the first edit need."""
        # Not a daemon: libraries abort the process if it ends while a thread is inside of them.
        Thread(target=self._warm_up).start()

    def _warm_up(self) -> None:
        computed = self.view().run.computed
        work: list[Callable[[], object]] = [
            lambda: computed.tree,
            lambda: computed.group_facts.describe(computed.labels, computed.assignments),
            computed.search_arrays.load,
            lambda: computed.usual_link,
            lambda: computed.half_closeness,
        ]
        for load in work:
            if not main_thread().is_alive():
                return
            # Whoever asks for what cannot be loaded is told so.
            with suppress(NouncutError):
                load()

    def view(self) -> View:
        """Return the run as it is now."""
        with self._lock:
            files = _file_versions(self.directory)
            if files != self._files:
                run = self._view.run.whole
                if files[MANIFEST] != self._files[MANIFEST]:
                    run = open_run(self.directory)
                else:
                    run = run.with_edits(run.log.read().edits)
                self._files, self._view = files, View(run)
            return self._view

    def files(self) -> _Files:
        """Return the names of the images' files."""
        run = self.view().run
        with self._lock:
            identity = run.manifest.get("id")
            if self._of_images is None or self._of_images[0] != identity:
                self._of_images = identity, _Files(run)
            return self._of_images[1]

    def preview(self, plan: Plan, version: str) -> tuple[Run, LoggedEdit]:
        """Return the run in a version, and what an edit would do to it."""
        with self._lock:
            run = checked_version(self.view().run.whole, version)
            return run, plan(run)

    def edit(self, plan: Plan, version: str) -> View:
        """Append an edit of the groups in a version; raise a `StaleError` if it is not the last."""
        with self._lock:
            run = self.view().run.whole
            log = run.log.append(
                lambda edits: plan(checked_version(run.with_edits(edits), version))
            )
            self._files = _file_versions(self.directory)
            self._view = View(run.with_edits(log.edits))
            return self._view


class _Files:
    """The folder and the names of all images of a run, which no edit changes."""

    def __init__(self, run: Run) -> None:
        self.folder = common_folder(run)
        paths = run.images["path"].slice(0, len(run.assignments)).combine_chunks()
        names = pc.replace_substring_regex(paths, r"^.*[/\\]", "")
        self._names: pa.Array = pc.utf8_lower(names)

    def holding(self, text: str, n: int) -> NDArray[np.intp]:
        """Return the rows of up to `n` images whose file names hold a text."""
        found = pc.match_substring(self._names, text.lower())
        return np.asarray(pc.indices_nonzero(found))[:n].astype(np.intp)


def version_of(run: Run, edits: tuple[LoggedEdit, ...]) -> str:
    """Return what identifies the edits of a run."""
    return f"{run.manifest.get('id')}.{len(edits)}"


def checked_version(run: Run, version: str) -> Run:
    """Return the run if it has this version."""
    if version_of(run, run.edits) != version:
        raise StaleError(
            "The groups were edited elsewhere in the meantime. They were loaded again."
        )
    return run


def _file_versions(directory: Path) -> dict[str, tuple[int, ...]]:
    """Return what changes if a writer touches the manifest or the edit log."""
    found: dict[str, tuple[int, ...]] = {}
    for name in (MANIFEST, EDITS):
        try:
            state = os.stat(directory / name, follow_symlinks=False)
        except OSError:
            found[name] = ()
        else:
            found[name] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found
