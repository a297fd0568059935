"""From a run to its ``report.html``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from nouncut.compute.files import NEW_SUFFIX
from nouncut.compute.progress import Progress
from nouncut.images.thumbnails import Original, Thumbnail, make_thumbnails
from nouncut.report.page import Page, describe_run
from nouncut.report.records import describe_images, file_blocks, thumbnail_blocks
from nouncut.report.render import render_page
from nouncut.runs.directory import explained
from nouncut.runs.run import Run

THUMBNAILS = "report-thumbnails"

_STAGE = "making thumbnails"
# A page on a disk has no origin, so 'self' alone would not let it load a file beside it.
_FILES_BESIDE = "data: 'self' file:"


def write_report(
    run: Run,
    *,
    names: Mapping[int, str] | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> Path:
    """Write a run's report: one HTML file with all its pictures inside.

    The page loads nothing from a network, and nothing that a file's or cluster's name says can
    run in it. It can be written again at any time; thumbnails are kept in the run directory, so
    that is quick and works without the original images. Above 10,000 images, the page takes the
    thumbnails of all but the typical images from that folder.

    Parameters
    ----------
    run : Run
        A finished run.
    names : mapping of int to str, optional
        Names for clusters by their numbers, see `nouncut.runs.renames.read_names`; by default those that
        are kept with the run.
    progress : callable, optional
        Called with the stage ("making thumbnails"), the number done and of all.
    n_jobs : int, default=-1
        Threads that make thumbnails; all cores by default.

    Returns
    -------
    Path
        The report, ``report.html`` in the run directory.

    Raises
    ------
    nouncut.errors.OutputError
        If the run is damaged, or if the report cannot be written. A report that was there is
        intact.

    Examples
    --------
    >>> import tempfile
    >>> from nouncut.report.write import write_report
    >>> from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA
    >>> from nouncut.runs.writer import RunContents, RunWriter
    >>> from nouncut.runs.tables import images_table
    >>> contents = RunContents(
    ...     manifest={"source": ["/home/me/pets"]},
    ...     assignments=ASSIGNMENTS_SCHEMA.empty_table(),
    ...     clusters=CLUSTERS_SCHEMA.empty_table(),
    ...     images=images_table([]),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder, RunWriter(folder) as writer:
    ...     report = write_report(writer.finish(contents))
    ...     report.name, "<h1" in report.read_text(encoding="utf-8")
    ('report.html', True)
    """
    if names is not None:
        run = replace(run, new_names=names)
    page = describe_run(run)
    maker = _ThumbnailMaker(run, page, progress, n_jobs)
    with explained(run.directory), _replacing(run.report) as file:
        for piece in _pieces(run, page, maker):
            # The manifest of a stranger's run may hold halves of characters.
            file.write(piece.encode("utf-8", "replace"))
    return run.report


class _ThumbnailMaker:
    """Makes the pictures of a report and tells how far it is."""

    def __init__(self, run: Run, page: Page, progress: Progress | None, n_jobs: int | None) -> None:
        self.folder, self.plan, self.n_jobs = run.directory / THUMBNAILS, page.plan, n_jobs
        self.progress = progress
        self.originals = {
            row: Original(picture.path, picture.content)
            for row, picture in (page.pictures() if page.has_pictures else {}).items()
        }
        n_rest = page.n_images if page.has_pictures else 0
        self.done, self.total = 0, len(self.originals) + n_rest

    def shown(self) -> dict[int, Thumbnail]:
        """Make the pictures that the page shows in any case."""
        made = self._make(self.originals, self.plan.side)
        self._tell(len(made))
        return made

    def small(self, originals: dict[int, Original], n_images: int) -> dict[int, Thumbnail]:
        """Make those of a block of images that are not shown."""
        made = self._make(originals, self.plan.small_side)
        self._tell(n_images)
        return made

    def _make(self, originals: dict[int, Original], side: int) -> dict[int, Thumbnail]:
        if not originals:
            return {}
        return make_thumbnails(
            originals,
            self.folder,
            side,
            progress=lambda stage, done, _: self._tell(0, done % len(originals)),
            n_jobs=self.n_jobs,
        )

    def _tell(self, n_done: int, n_under_way: int = 0) -> None:
        self.done += n_done
        if self.progress is not None and n_done + n_under_way:
            self.progress(_STAGE, self.done + n_under_way, self.total)


def _pieces(run: Run, page: Page, maker: _ThumbnailMaker) -> Iterator[str]:
    thumbnails = maker.shown()
    is_inline = page.plan.is_inline
    data = describe_images(run)
    data["thumbnails"] = None if is_inline else f"{THUMBNAILS}/{page.plan.small_side}"

    def small_blocks() -> Iterator[list[str | int | list[str]]]:
        return thumbnail_blocks(run, set(thumbnails), maker.small, is_inline)

    return render_page(
        thumbnails.__getitem__,
        "data:" if is_inline else _FILES_BESIDE,
        page=page,
        data=data,
        has_map="x" in data["columns"],
        file_blocks=file_blocks(run),
        thumbnail_blocks=small_blocks() if page.has_pictures else (),
    )


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when all is written."""
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}{NEW_SUFFIX}")
    try:
        with unfinished.open("xb") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
