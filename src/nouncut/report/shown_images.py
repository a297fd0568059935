"""Which images the page shows, how large, and what it says about each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from nouncut.errors import printable_path
from nouncut.images.find import address_text, is_elsewhere
from nouncut.runs.run import Run
from nouncut.runs.tables import real_paths

# With thumbnails of more images, the page would be too large to open or to send.
MAX_INLINE = 10_000

_MAX_EXEMPLARS = 3000
_MAX_BORDERLINE = 1000
# Bytes that thumbnails may add to the page: those of shown images, with and without those of all
# images beside them, and those of all images.
_BYTES_SHOWN = 11e6
_BYTES_SHOWN_ALONE = 20e6
_BYTES_ALL = 16e6
_SIDES = (320, 256, 224, 192, 160, 128, 112, 96, 80, 64)
_SIDE_OF_FILES = 160


@dataclass(frozen=True)
class ThumbnailPlan:
    """How many images of each cluster the page shows, and the sizes of thumbnails in pixels."""

    n_exemplars: int
    n_borderline: int
    side: int
    small_side: int
    is_inline: bool


@dataclass(frozen=True)
class ShownImage:
    """An image on the page."""

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

    @property
    def identity(self) -> object:
        """Equal for copies of one image."""
        return self.content or self.row


def plan_thumbnails(n_images: int, n_clusters: int) -> ThumbnailPlan:
    """Choose how many images to show and how large, so that any page stays below 30 MB."""
    n_clusters = max(1, n_clusters)
    n_exemplars = max(1, min(12, _MAX_EXEMPLARS // n_clusters))
    n_borderline = min(8, _MAX_BORDERLINE // n_clusters)
    is_inline = n_images <= MAX_INLINE
    small_side = _largest_side(_BYTES_ALL, n_images) if is_inline else _SIDE_OF_FILES
    n_shown = min(n_images, n_clusters * (n_exemplars + n_borderline))
    side = _largest_side(_BYTES_SHOWN if is_inline else _BYTES_SHOWN_ALONE, n_shown)
    return ThumbnailPlan(
        n_exemplars=n_exemplars,
        n_borderline=n_borderline,
        side=max(side, small_side) if is_inline else side,
        small_side=small_side,
        is_inline=is_inline,
    )


def _largest_side(n_bytes: float, n_thumbnails: int) -> int:
    # Base64 turns 3 bytes into 4.
    per_thumbnail = n_bytes / max(1, n_thumbnails) * 3 / 4
    # The bytes of a WebP thumbnail, measured on detailed photographs at sides from 48 to 224.
    return next((side for side in _SIDES if 4.6 * side**1.36 <= per_thumbnail), _SIDES[-1])


def describe_images(run: Run, rows: Iterable[int]) -> dict[int, ShownImage]:
    """Describe the images in some rows of a run."""
    chosen = pa.array(sorted(set(rows)), pa.int32())
    images = run.images.take(chosen)
    folder = common_folder(run)
    n_identical = _repeated_contents(run.images["hash"])
    described = {}
    for row, path, content, assigned in zip(
        chosen.to_pylist(),
        real_paths(images),
        images["hash"].to_pylist(),
        run.assignments.take(chosen).to_pylist(),
        strict=True,
    ):
        described[row] = ShownImage(
            row=row,
            path=path,
            content=content,
            shown_path=printable_path(address_text(relative_path(path, folder))),
            link=link_to(path, run.directory)
            if run.has_images and not is_elsewhere(path)
            else None,
            n_identical=n_identical.get(content, 1),
            cluster=assigned["cluster"],
            name=assigned["name"] or "",
            second_name=assigned["second_name"] or "",
            second_cluster=assigned["second_cluster"],
            confidence=assigned["confidence"],
            second_confidence=assigned["second_confidence"],
        )
    return described


def distinct_images(images: Sequence[ShownImage], limit: int) -> list[ShownImage]:
    """Return the first `limit` images that are no copies of earlier ones."""
    first: dict[object, ShownImage] = {}
    for image in images:
        first.setdefault(image.identity, image)
    return list(first.values())[:limit]


def common_folder(run: Run) -> Path | None:
    """Return the deepest folder that holds all images, if there are image files."""
    first = run.images["path"].slice(0, 1).to_pylist()
    are_elsewhere = any(is_elsewhere(path or "") for path in first)
    return run.common_folder() if run.has_images and not are_elsewhere else None


def relative_path(path: Path, folder: Path | None) -> Path:
    """Return a path relative to a folder that holds it, otherwise the path."""
    return path.relative_to(folder) if folder and path.is_relative_to(folder) else path


def link_to(path: Path, directory: Path) -> str:
    """Return a link from a directory to a file, quoted so that no name becomes a script."""
    try:
        return quote(os.fsencode(Path(os.path.relpath(path, directory)).as_posix()))
    except ValueError:
        # On Windows, no relative path leads from one drive to another.
        return path.as_uri()


def _repeated_contents(hashes: pa.ChunkedArray) -> dict[str, int]:
    counts = pc.value_counts(hashes.drop_null())
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    return {count["values"]: count["counts"] for count in repeated.to_pylist()}
