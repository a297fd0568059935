"""Data about every image for the page's scripts: columns as bytes, names and thumbnails as JSON.

Names and thumbnails are made in blocks while the page is written, so memory stays small.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from numpy.typing import NDArray

from nouncut.errors import printable_path
from nouncut.images.find import address_text, is_elsewhere
from nouncut.images.thumbnails import Original, Thumbnail
from nouncut.report.shown_images import common_folder, link_to, relative_path
from nouncut.runs.run import Run
from nouncut.runs.tables import real_paths
from nouncut.runs.tree import TreeNode

FILES_PER_BLOCK = 1000
THUMBNAILS_PER_BLOCK = 256

# data.js decodes the columns with the same numbers.
_LARGEST = 65535
_UNKNOWN = 255
_SURE = 250

# A thumbnail in base64 or its file name, the row of an equal image, or why there is none.
Entry = str | int | list[str]


def as_json(value: Any) -> Markup:
    """Return a value as JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", r"\u003c"))


def report_data(run: Run, thumbnail_folder: str | None) -> dict[str, Any]:
    """Return the data of all images that the scripts read at once."""
    folder = common_folder(run)
    return {
        "run": run.manifest.get("id"),
        "names": names_by_number(run),
        "setAside": set_aside_number(run),
        "renamed": sorted(run.groups.given),
        "tree": tree_levels(run.tree),
        "nImages": len(run.assignments),
        "hasImages": run.has_images,
        "folder": printable_path(folder) if folder else "",
        "separator": os.sep,
        "base": link_to(folder, run.directory) if folder else None,
        "filesPerBlock": FILES_PER_BLOCK,
        "thumbnailsPerBlock": THUMBNAILS_PER_BLOCK,
        "columns": {
            name: b64encode(np.ascontiguousarray(column).tobytes()).decode()
            for name, column in (image_columns(run) | map_columns(run)).items()
        },
        "thumbnails": thumbnail_folder,
    }


def tree_levels(tree: TreeNode) -> list[list[dict[str, Any]]]:
    """Return the groups of clusters by level, the coarsest first; the root is none of them."""
    levels, nodes = [], [child for child in tree.children if child.children]
    while nodes:
        levels.append([{"name": node.name, "clusters": list(node.clusters)} for node in nodes])
        nodes = [child for node in nodes for child in node.children if child.children]
    return levels


def file_blocks(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the names of all files in blocks, with links where the names alone do not suffice."""
    folder = common_folder(run)
    for start in range(0, len(run.assignments), FILES_PER_BLOCK):
        yield file_block(run, start, folder)


def file_block(run: Run, start: int, folder: Path | None) -> dict[str, Any]:
    """Return the names of the files of one block, below the folder of all images."""
    are_files = run.has_images
    size = min(FILES_PER_BLOCK, len(run.assignments) - start)
    paths, links = [], {}
    for row, path in enumerate(real_paths(run.images.slice(start, size)), start):
        relative = relative_path(path, folder).as_posix() if are_files else str(path)
        shown = printable_path(address_text(relative))
        paths.append(shown)
        if are_files and (shown != relative or folder is None):
            links[str(row)] = None if is_elsewhere(path) else link_to(path, run.directory)
    return {"paths": paths, "links": links}


def thumbnail_blocks(
    run: Run,
    shown: set[int],
    make: Callable[[dict[int, Original], int], dict[int, Thumbnail]],
    is_inline: bool,
) -> Iterator[list[Entry]]:
    """Yield the thumbnails of all images in blocks; `shown` rows are on the page already."""
    n_images = len(run.assignments)
    hashes = run.images["hash"]
    # In a folder, equal images share one file anyway.
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


def unit_square(points: NDArray[Any]) -> NDArray[np.float32]:
    """Scale (n, 2) points into the unit square, both axes alike; unknown ones to the middle."""
    known = np.isfinite(points).all(axis=1)
    scaled = np.full(points.shape, 0.5, dtype=np.float32)
    if known.any():
        finite = points[known].astype(np.float64)
        low, high = finite.min(axis=0), finite.max(axis=0)
        size = float((high - low).max()) or 1.0
        scaled[known] = (0.5 + (finite - (low + high) / 2) / size).clip(0, 1)
    return scaled


def image_columns(run: Run) -> dict[str, NDArray[Any]]:
    """Return cluster, second choice, both confidences and whether it is an outlier, per image."""
    table = run.assignments
    return {
        "cluster": _two_bytes(table["cluster"], set_aside_number(run)),
        "second": _two_bytes(table["second_cluster"]),
        "confidence": _one_byte(table["confidence"]),
        "secondConfidence": _one_byte(table["second_confidence"]),
        "outlier": table["outlier"].to_numpy().astype(np.uint8),
    }


def map_columns(run: Run) -> dict[str, NDArray[np.uint16]]:
    """Return where the images lie on the map; nothing if there is none."""
    points = run.map()
    if points is None:
        return {}
    x, y = np.rint(unit_square(points).T * _LARGEST).astype("<u2")
    return {"x": x, "y": y}


def names_by_number(run: Run) -> list[str | None]:
    """Return the names of clusters by number, and of images in none; merges have left gaps."""
    known = run.names_by_cluster
    return [known.get(number) for number in range(set_aside_number(run))] + ["Set aside"]


def set_aside_number(run: Run) -> int:
    """Return the number that images without a cluster have on the page."""
    return 1 + max(run.names_by_cluster, default=-1)


def _two_bytes(column: pa.ChunkedArray, missing: int = _LARGEST) -> NDArray[np.uint16]:
    numbers: NDArray[Any] = column.fill_null(missing).to_numpy()
    return numbers.astype("<u2")


def _one_byte(column: pa.ChunkedArray) -> NDArray[np.uint8]:
    shares: NDArray[Any] = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
    scaled = np.rint(np.clip(np.nan_to_num(shares), 0, 1) * _SURE)
    return np.where(np.isnan(shares), _UNKNOWN, scaled).astype(np.uint8)


def _entry(thumbnail: Thumbnail, is_inline: bool) -> Entry:
    if thumbnail.file is None:
        return [thumbnail.problem]
    if is_inline:
        return b64encode(thumbnail.file.read_bytes()).decode("ascii")
    return thumbnail.file.stem
