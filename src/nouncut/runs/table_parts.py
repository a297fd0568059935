"""The tables of a run read in parts, so that a large run needs little memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.images.find import SkippedFile
from nouncut.runs.tables import real_paths

if TYPE_CHECKING:
    from nouncut.runs.run import Run
    from nouncut.runs.sample import SampledRun

_Rows = NDArray[np.intp]


class TableParts:
    """Reads tables in parts; part of `Run`."""

    @property
    def n_images(self) -> int:
        """Number of clustered images."""
        return int(cast("Run", self).manifest["n_images"])

    @property
    def n_set_aside(self) -> int:
        """Number of images that edits have set aside."""
        run = cast("Run", self)
        return int((run.groups.labels < 0).sum()) if run.edits else 0

    @property
    def is_large(self) -> bool:
        """Whether the tables are in parts, and only a `sample` has arrays."""
        return bool(cast("Run", self).manifest.get("parts"))

    @cached_property
    def sample(self) -> SampledRun | None:
        """Some images of a large run, as a run with all arrays; None if the run has them itself."""
        from nouncut.runs.sample import open_sample

        return open_sample(cast("Run", self))

    @property
    def whole(self) -> Run:
        """The run of all images: of a `sample`, the large run that it is from."""
        return cast("Run", self)

    def assignment_parts(self) -> Iterator[pa.Table]:
        """Yield the rows of `assignments`, one part of a large run at a time.

        Yields
        ------
        pyarrow.Table
            Some rows, in the order of `assignments`.
        """
        run, start = cast("Run", self), 0
        if not self.is_large:
            yield run.assignments
            return
        for part in run._files.parts("assignments"):
            yield self._edited(part, slice(start, start + len(part)))
            start += len(part)

    def image_parts(self) -> Iterator[pa.Table]:
        """Yield the rows of `images` that were clustered, one part of a large run at a time.

        Yields
        ------
        pyarrow.Table
            Some rows, in the order of `assignments`.
        """
        run = cast("Run", self)
        if self.is_large:
            yield from run._files.parts("images", 0, self.n_images)
        else:
            yield run.images.slice(0, self.n_images)

    def take_assignments(self, rows: _Rows) -> pa.Table:
        """Return some rows of `assignments`.

        Parameters
        ----------
        rows : ndarray of int
            Row numbers, in any order.

        Returns
        -------
        pyarrow.Table
            These rows; only the parts that hold them are read.
        """
        run = cast("Run", self)
        if not self.is_large:
            return run.assignments.take(rows)
        return self._edited(run._files.take("assignments", rows), rows)

    def take_images(self, rows: _Rows) -> pa.Table:
        """Return some rows of `images`; see `take_assignments`.

        Parameters
        ----------
        rows : ndarray of int
            Row numbers, in any order.

        Returns
        -------
        pyarrow.Table
            These rows.
        """
        run = cast("Run", self)
        return run._files.take("images", rows) if self.is_large else run.images.take(rows)

    @property
    def skipped(self) -> list[SkippedFile]:
        """Files that were not clustered, and why."""
        run = cast("Run", self)
        if self.is_large:
            parts = list(run._files.parts("images", self.n_images))
        else:
            parts = [run.images.slice(self.n_images)]
        return [
            SkippedFile(path, reason)
            for part in parts
            for path, reason in zip(real_paths(part), part["error"].to_pylist(), strict=True)
        ]

    @cached_property
    def _computed_labels(self) -> _Rows:
        """The cluster of every image of a run without edits."""
        parts = [part["cluster"].to_numpy() for part in self.assignment_parts()]
        return np.concatenate(parts).astype(np.intp)

    def _edited(self, table: pa.Table, rows: _Rows | slice) -> pa.Table:
        run = cast("Run", self)
        if not run.edits:
            return table
        from nouncut.runs.edited_tables import edited_assignments

        return edited_assignments(table, run.groups.take(rows))
