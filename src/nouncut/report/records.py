"""What the page's scripts know of every image: numbers as bytes, names and pictures as JSON.

All of it is made in pieces while the page is written, so that memory does not grow with it.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from numpy.typing import NDArray

from nouncut.errors import printable_path
from nouncut.images.thumbnails import Original, Thumbnail
from nouncut.report.pictures import below, link_to
from nouncut.report.positions import map_positions
from nouncut.runs.run import Run
from nouncut.runs.tables import real_paths

FILES_PER_BLOCK = 1000
THUMBNAILS_PER_BLOCK = 256

_LARGEST = 65535
_UNKNOWN = 255
_SURE = 250


def as_json(value: Any) -> Markup:
    r"""Return a value as JSON that can stand in a page."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", r"\u003c"))


def describe_images(run: Run) -> dict[str, Any]:
    """Return what the scripts know of all images at once: columns of small numbers."""
    positions = map_positions(run)
    table = run.assignments
    columns = {
        "cluster": _two_bytes(table["cluster"]),
        "second": _two_bytes(table["second_cluster"]),
        "confidence": _certainty(table["confidence"]),
        "secondConfidence": _certainty(table["second_confidence"]),
        "outlier": table["outlier"].to_numpy().astype(np.uint8),
    }
    if positions is not None:
        columns["x"], columns["y"] = np.rint(positions.T * _LARGEST).astype("<u2")
    has_files = run.manifest.get("source_kind") != "features"
    folder = run.common_folder() if has_files and len(table) else None
    return {
        "run": run.manifest.get("id"),
        "names": run.names,
        "renamed": sorted(run.new_names),
        "nImages": len(table),
        "hasPictures": has_files,
        "folder": printable_path(folder) if folder else "",
        "separator": os.sep,
        "base": link_to(folder, run.directory) if folder else None,
        "filesPerBlock": FILES_PER_BLOCK,
        "thumbnailsPerBlock": THUMBNAILS_PER_BLOCK,
        "columns": {
            name: b64encode(np.ascontiguousarray(column).tobytes()).decode()
            for name, column in columns.items()
        },
    }


def file_blocks(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the names of all files, a thousand at a time."""
    n_images = run.assignments.num_rows
    has_files = run.manifest.get("source_kind") != "features"
    folder = run.common_folder() if has_files and n_images else None
    for start in range(0, n_images, FILES_PER_BLOCK):
        size = min(FILES_PER_BLOCK, n_images - start)
        paths, links = [], {}
        for row, path in enumerate(real_paths(run.images.slice(start, size)), start):
            relative = below(path, folder).as_posix() if has_files else str(path)
            shown = printable_path(relative)
            paths.append(shown)
            if has_files and (shown != relative or folder is None):
                links[str(row)] = link_to(path, run.directory)
        yield {"paths": paths, "links": links}


def thumbnail_blocks(
    run: Run,
    shown: set[int],
    make: Callable[[dict[int, Original], int], dict[int, Thumbnail]],
    is_inline: bool,
) -> Iterator[list[str | int | list[str]]]:
    """Yield small pictures of all images, some hundred at a time."""
    n_images = run.assignments.num_rows
    hashes = run.images["hash"]
    # In a folder, equal pictures are one file anyway.
    first: dict[object, int] = {hashes[row].as_py() or row: row for row in sorted(shown)}
    first = first if is_inline else {}
    for start in range(0, n_images, THUMBNAILS_PER_BLOCK):
        images = run.images.slice(start, min(THUMBNAILS_PER_BLOCK, n_images - start))
        same, wanted = [], {}
        for row, path in enumerate(real_paths(images), start):
            content = hashes[row].as_py()
            same.append(first.setdefault(content or row, row) if is_inline else row)
            if same[-1] == row and not (is_inline and row in shown):
                wanted[row] = Original(path, content)
        made = make(wanted, images.num_rows)
        yield [
            _entry(made[row], is_inline) if row in made else other
            for row, other in enumerate(same, start)
        ]


def _entry(thumbnail: Thumbnail, is_inline: bool) -> str | list[str]:
    if thumbnail.file is None:
        return [thumbnail.problem]
    if is_inline:
        return b64encode(thumbnail.file.read_bytes()).decode("ascii")
    return thumbnail.file.stem


def _two_bytes(column: pa.ChunkedArray) -> NDArray[np.uint16]:
    numbers: NDArray[Any] = column.fill_null(_LARGEST).to_numpy()
    return numbers.astype("<u2")


def _certainty(column: pa.ChunkedArray) -> NDArray[np.uint8]:
    shares: NDArray[Any] = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
    counted = np.rint(np.clip(np.nan_to_num(shares), 0, 1) * _SURE)
    return np.where(np.isnan(shares), _UNKNOWN, counted).astype(np.uint8)
