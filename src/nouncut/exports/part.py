"""The images of a run that are exported: all of them, or a selection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.errors import InputError, ParameterError
from nouncut.runs.tables import real_paths

if TYPE_CHECKING:
    from nouncut.runs.run import Run


@dataclass(frozen=True)
class Part:
    """Some images of a run, by their rows in ascending order."""

    run: Run
    rows: NDArray[np.intp]

    @cached_property
    def is_all(self) -> bool:
        """Whether these are all images of the run."""
        return len(self.rows) == self.run.n_images

    @cached_property
    def assignments(self) -> pa.Table:
        """The rows of `Run.assignments`."""
        return self.run.assignments if self.is_all else self.run.take_assignments(self.rows)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows of `Run.assignments`, one part of a large run at a time."""
        if self.is_all:
            yield from self.run.assignment_parts()
        else:
            yield self.assignments

    @cached_property
    def images(self) -> pa.Table:
        """The rows of `Run.images`."""
        if self.is_all:
            return self.run.images.slice(0, self.run.n_images)
        return self.run.take_images(self.rows)

    @property
    def labels(self) -> NDArray[np.intp]:
        """The clusters; -1 for images that are set aside."""
        return self.run.labels[self.rows]

    def paths(self) -> list[Path]:
        """Return the paths of the images."""
        return real_paths(self.images)


def part_of(
    run: Run, rows: Iterable[int] | None = None, groups: Iterable[int | str] | None = None
) -> Part:
    """Return the images in `rows` and in `groups` (numbers or names); all if neither is given."""
    n_images = run.n_images
    if rows is None and groups is None:
        return Part(run, np.arange(n_images))
    chosen = [_checked_rows([] if rows is None else rows, n_images)]
    labels = run.labels
    chosen += [np.flatnonzero(labels == run.groups.find(group)) for group in groups or ()]
    found = np.unique(np.concatenate(chosen))
    if not len(found):
        raise InputError("There are no images to export. Select at least one.")
    return Part(run, found)


def _checked_rows(rows: Iterable[Any], n_images: int) -> NDArray[np.intp]:
    numbers = np.asarray(rows if isinstance(rows, np.ndarray) else list(rows))
    if (numbers.size and numbers.dtype.kind not in "iu") or numbers.ndim != 1:
        raise ParameterError("`rows` must be whole numbers.")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < n_images):
        raise InputError(
            f"`rows` must be from 0 to {n_images - 1}: the run has {n_images:,} images."
        )
    return numbers.astype(np.intp)
