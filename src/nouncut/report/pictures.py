"""Which images the report shows, and what it says of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from nouncut.errors import printable_path
from nouncut.runs.run import Run
from nouncut.runs.tables import real_paths

# Above this, small pictures of all images would make a page that is too heavy to open or to send.
MAX_INLINE = 10_000

_EXEMPLARS_IN_ALL = 3000
_BORDERLINE_IN_ALL = 1000
# What pictures may add to the page: those that are always shown, and those of all images.
_BYTES_SHOWN = 11e6
_BYTES_SHOWN_ALONE = 20e6
_BYTES_OF_ALL = 16e6
_SIDES = (320, 256, 224, 192, 160, 128, 112, 96, 80, 64)
_SIDE_OF_FILES = 160


@dataclass(frozen=True)
class PicturePlan:
    """How many pictures of which size a report shows."""

    n_exemplars: int
    n_borderline: int
    side: int
    small_side: int
    is_inline: bool


def plan_pictures(n_images: int, n_clusters: int) -> PicturePlan:
    """Choose how many pictures to show, so that any report stays below some 30 MB."""
    n_clusters = max(1, n_clusters)
    n_exemplars = max(1, min(12, _EXEMPLARS_IN_ALL // n_clusters))
    n_borderline = min(8, _BORDERLINE_IN_ALL // n_clusters)
    is_inline = n_images <= MAX_INLINE
    small_side = _largest_side(_BYTES_OF_ALL, n_images) if is_inline else _SIDE_OF_FILES
    n_shown = min(n_images, n_clusters * (n_exemplars + n_borderline))
    side = _largest_side(_BYTES_SHOWN if is_inline else _BYTES_SHOWN_ALONE, n_shown)
    return PicturePlan(
        n_exemplars=n_exemplars,
        n_borderline=n_borderline,
        side=max(side, small_side) if is_inline else side,
        small_side=small_side,
        is_inline=is_inline,
    )


def _largest_side(n_bytes: float, n_pictures: int) -> int:
    """Return the largest side at which that many photographs, as text, take that many bytes."""
    per_picture = n_bytes / max(1, n_pictures) * 3 / 4
    # Measured on photographs with much detail, at sides from 48 to 224.
    return next((side for side in _SIDES if 4.6 * side**1.36 <= per_picture), _SIDES[-1])


@dataclass(frozen=True)
class Picture:
    """An image of the report, in words."""

    row: int
    path: Path
    content: str | None
    shown_path: str
    link: str | None
    n_identical: int
    cluster: int
    name: str
    second_name: str
    second_cluster: int | None
    confidence: float | None
    second_confidence: float | None

    @property
    def file_name(self) -> str:
        """The last part of the path, on one line."""
        return printable_path(self.path.name)


def describe_pictures(run: Run, rows: Iterable[int]) -> dict[int, Picture]:
    """Describe some images of a run."""
    chosen = pa.array(sorted(set(rows)), pa.int32())
    images = run.images.take(chosen)
    has_files = run.manifest.get("source_kind") != "features"
    folder = run.common_folder() if has_files else None
    identical = _repeated_contents(run.images["hash"])
    described = {}
    for row, path, content, choice in zip(
        chosen.to_pylist(),
        real_paths(images),
        images["hash"].to_pylist(),
        run.assignments.take(chosen).to_pylist(),
        strict=True,
    ):
        described[row] = Picture(
            row=row,
            path=path,
            content=content,
            shown_path=printable_path(below(path, folder)),
            link=link_to(path, run.directory) if has_files else None,
            n_identical=identical.get(content, 1),
            cluster=choice["cluster"],
            name=choice["name"] or "",
            second_name=choice["second_name"] or "",
            second_cluster=choice["second_cluster"],
            confidence=choice["confidence"],
            second_confidence=choice["second_confidence"],
        )
    return described


def distinct_pictures(pictures: Sequence[Picture], limit: int) -> list[Picture]:
    """Return the first pictures that differ from those before."""
    first: dict[object, Picture] = {}
    for picture in pictures:
        first.setdefault(picture.content or picture.row, picture)
    return list(first.values())[:limit]


def below(path: Path, folder: Path | None) -> Path:
    """Return a path as seen from a folder."""
    return path.relative_to(folder) if folder and path.is_relative_to(folder) else path


def link_to(path: Path, directory: Path) -> str:
    """Return the way from a directory to a file; a colon is quoted, so it cannot be a script."""
    try:
        return quote(os.fsencode(Path(os.path.relpath(path, directory)).as_posix()))
    except ValueError:
        # On Windows there is no way from one drive to another.
        return path.as_uri()


def _repeated_contents(hashes: pa.ChunkedArray) -> dict[str, int]:
    counts = pc.value_counts(hashes.drop_null())
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    return {count["values"]: count["counts"] for count in repeated.to_pylist()}
