"""Write ``report.html``, the page of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nouncut.compute.files import atomic_file, explained_writing
from nouncut.compute.progress import Progress
from nouncut.images.thumbnails import Original, Thumbnail, make_thumbnails
from nouncut.report.page import Page, describe_run
from nouncut.report.reasons import reasons_data
from nouncut.report.render import render_page
from nouncut.report.script_data import file_blocks, report_data, thumbnail_blocks
from nouncut.report.shown_images import MAX_INLINE
from nouncut.report.thumbnail_files import (
    THUMBNAILS,
    folders_beside,
    link_known,
    make_folder,
    remove_left_behind,
    remove_unusable,
)
from nouncut.runs.run import Run
from nouncut.runs.sample import whole_rows

_STAGE = "making thumbnails"
# A page opened from a disk has no origin, so 'self' alone would block the thumbnails beside it.
_FILES_BESIDE = "data: 'self' file:"


def write_report(
    run: Run,
    *,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> Path:
    """Write the report of a run: one HTML page with all thumbnails inside.

    The page loads nothing from a network and runs no scripts but its own, whatever files and
    clusters are called. Thumbnails are kept in the run directory, so a report can be written again
    quickly, even without the original images; runs in the same folder share them. Above 10,000
    images, the page loads most thumbnails from that folder. Of a large run, the map and the gallery
    have a sample of the images, and all numbers count all of them.

    Parameters
    ----------
    run : Run
        A finished run.
    progress : callable, optional
        Called with the stage ("making thumbnails"), the number done and the total.
    n_jobs : int, default=-1
        Number of threads that make thumbnails; -1 for all cores.

    Returns
    -------
    Path
        ``report.html`` in the run directory.

    Raises
    ------
    InputError
        If a file of the run is missing or damaged.
    OutputError
        If the report cannot be written. An earlier report stays intact.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> from nouncut.report.write import write_report
    >>> from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
    >>> from nouncut.runs.writer import RunContents, RunWriter
    >>> dog = {"cluster": 0, "name": "dog", "size": 1, "exemplars": [0], "borderline": []}
    >>> contents = RunContents(
    ...     manifest={"source": ["/me/pets"]},
    ...     assignments=pa.Table.from_pylist(
    ...         [{"path": "/me/pets/rex.jpg", "cluster": 0, "name": "dog", "outlier": False}],
    ...         schema=ASSIGNMENTS_SCHEMA,
    ...     ),
    ...     clusters=pa.Table.from_pylist([dog], schema=CLUSTERS_SCHEMA),
    ...     images=images_table(["/me/pets/rex.jpg"]),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder, RunWriter(folder) as writer:
    ...     report = write_report(writer.finish(contents))
    ...     report.name, "dog" in report.read_text(encoding="utf-8")
    ('report.html', True)
    """
    run = run.sample or run
    page = describe_run(run)
    thumbnails = _ThumbnailMaker(run, page, progress, n_jobs)
    remedy = "copy the run to another folder and write the report there"
    with (
        explained_writing("the report", run.directory, remedy),
        atomic_file(run.report) as file,
    ):
        began = os.fstat(file.fileno()).st_mtime_ns
        for piece in _pieces(run, page, thumbnails):
            # A manifest from elsewhere may hold lone surrogates, which UTF-8 cannot encode.
            file.write(piece.encode("utf-8", "replace"))
        remove_left_behind(run.directory, began)
    return run.report


def wanted_thumbnails(run: Run) -> dict[int, list[int]]:
    """Return the rows of images whose thumbnails a report shows, by the side of a thumbnail.

    Beyond those that the page holds, only as many as it could hold: they are made from images that
    are not on this machine.
    """
    sample = run.sample or run
    page = describe_run(sample)
    plan, n_images = page.plan, page.n_mapped
    some = np.unique(np.linspace(0, n_images - 1, min(n_images, MAX_INLINE)).astype(int)).tolist()
    wanted = {plan.small_side: some}
    wanted[plan.side] = sorted({*wanted.get(plan.side, []), *page.shown_images()})
    return {side: whole_rows(sample, np.array(rows)).tolist() for side, rows in wanted.items()}


class _ThumbnailMaker:
    """Makes the thumbnails of a report and reports progress over all of them."""

    def __init__(self, run: Run, page: Page, progress: Progress | None, n_jobs: int | None) -> None:
        self.directory, self.plan, self.n_jobs = run.directory, page.plan, n_jobs
        self.known_folders = folders_beside(run.directory)
        self.progress = progress
        self.shown_originals = {
            row: Original(image.path, image.content)
            for row, image in (page.shown_images() if page.has_images else {}).items()
        }
        self.done = 0
        self.total = len(self.shown_originals) + (page.n_mapped if page.has_images else 0)

    def shown(self) -> dict[int, Thumbnail]:
        """Make the large thumbnails of the images that the page shows."""
        made = self._make(self.shown_originals, self.plan.side, is_embedded=True)
        self._report(len(made))
        return made

    def small(self, originals: dict[int, Original], n_images: int) -> dict[int, Thumbnail]:
        """Make the small thumbnails of a block of `n_images` images."""
        made = self._make(originals, self.plan.small_side, is_embedded=self.plan.is_inline)
        self._report(n_images)
        return made

    def _make(
        self, originals: dict[int, Original], side: int, *, is_embedded: bool
    ) -> dict[int, Thumbnail]:
        if not originals:
            return {}
        wanted = {f"{original.content}.webp" for original in originals.values()}
        folder = make_folder(self.directory, side)
        link_known(wanted, [known / str(side) for known in self.known_folders], folder)
        remove_unusable(wanted, folder, side, decode=is_embedded)
        return make_thumbnails(
            originals,
            folder.parent,
            side,
            # The last call, with all done, is left to the callers: they know the block's size.
            progress=lambda stage, done, total: self._report(0, done % total),
            n_jobs=self.n_jobs,
        )

    def _report(self, n_done: int, n_under_way: int = 0) -> None:
        self.done += n_done
        if self.progress is not None and n_done + n_under_way:
            self.progress(_STAGE, self.done + n_under_way, self.total)


def _pieces(run: Run, page: Page, thumbnails: _ThumbnailMaker) -> Iterator[str]:
    shown = thumbnails.shown()
    is_inline = page.plan.is_inline
    data = report_data(run, None if is_inline else f"{THUMBNAILS}/{page.plan.small_side}")
    blocks = thumbnail_blocks(run, set(shown), thumbnails.small, is_inline)
    return render_page(
        shown.__getitem__,
        "data:" if is_inline else _FILES_BESIDE,
        page=page,
        data=data,
        reasons=reasons_data(run, page.shown_images()),
        kind="images" if page.has_images else "rows",
        has_map="x" in data["columns"],
        file_blocks=file_blocks(run),
        thumbnail_blocks=blocks if page.has_images else (),
    )
