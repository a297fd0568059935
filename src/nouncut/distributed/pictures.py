"""Thumbnails for the report of images that are not files on the client's machine.

After the run is written, the images that its report shows are read once more where they are.
"""

from __future__ import annotations

import io
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nouncut.distributed.encode import tar_spans
from nouncut.distributed.shard_readers import AccessError, DamageError, Item, shard_items
from nouncut.distributed.shards import Listing, shard_name
from nouncut.distributed.stages import Engine, Result, Task
from nouncut.distributed.storage import Options, Storage
from nouncut.errors import ImageError
from nouncut.images.find import is_elsewhere
from nouncut.images.hashing import image_bytes_hash, image_hash
from nouncut.images.open import open_image, open_image_bytes
from nouncut.images.thumbnails import webp_thumbnail
from nouncut.runs.run import Run
from nouncut.runs.tables import unicode_text

STAGE = "making thumbnails"
# The folder in a run directory where a report looks for thumbnails.
THUMBNAILS = "report-thumbnails"


def make_pictures(
    engine: Engine,
    listing: Listing,
    counts: Sequence[int],
    run: Run,
    wanted: Mapping[int, Sequence[int]],
    options: Options | None = None,
) -> int:
    """Put thumbnails into a run directory; return how many.

    Parameters
    ----------
    engine : Engine
        Runs the tasks.
    listing : Listing
        The shards of the source.
    counts : sequence of int
        Number of clustered images of every shard.
    run : Run
        The finished run.
    wanted : mapping from int to sequence of int
        Rows of images, by the side of their thumbnails in pixels.
    options : mapping, optional
        What fsspec needs to open the source.

    Returns
    -------
    int
        The number of thumbnails; 0 if the client can open the images itself.
    """
    if not counts or not _are_away(run):
        return 0
    spans, common = tar_spans(engine, listing, options or {}), {"options": dict(options or {})}
    tasks = [
        Task(f"{n:05d}", picture_shard, {"number": n, "span": spans.get(n), "wanted": own} | common)
        for n, own in sorted(_by_shard(run, counts, wanted).items())
    ]
    engine.run("pictures", tasks, STAGE)
    return sum(_unpack(engine.storage, task.key, run.directory) for task in tasks)


def picture_shard(
    storage: Storage,
    number: int,
    wanted: Mapping[str, Mapping[str, Any]],
    options: Options,
    span: Sequence[int] | None = None,
) -> Result:
    """Make the thumbnails of some images of a shard: `wanted` has their hashes and sizes."""
    shard = storage.read_json(shard_name(number))
    if span is not None:
        shard |= {"start": span[0], "stop": span[1]}
    left, made = dict(wanted), []
    try:
        for item in shard_items(shard, options):
            if (asked := left.pop(unicode_text(item.path), None)) is not None:
                made += _thumbnail(item, asked["hash"], asked["side"])
            if not left:
                break
    except (AccessError, DamageError):
        pass  # A report without some pictures is better than none.
    columns = zip(*made, strict=True) if made else ([], [], [])
    table = pa.table(dict(zip(("side", "hash", "content"), map(list, columns), strict=True)))
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    storage.write_bytes(f"pictures/{number:05d}.parquet", buffer.getbuffer())
    return {"n_made": len(made)}


def _are_away(run: Run) -> bool:
    """Return whether the client cannot open the images of a run: the first one tells."""
    path = run.images["path"][0].as_py() or ""
    return run.has_images and (is_elsewhere(path) or not os.path.exists(path))


def _by_shard(
    run: Run, counts: Sequence[int], wanted: Mapping[int, Sequence[int]]
) -> dict[int, dict[str, Any]]:
    """Return the wanted images of every shard that has some, by their paths."""
    # Smaller thumbnails are made from the largest one.
    sides = {row: side for side, rows in sorted(wanted.items()) for row in rows}
    rows = sorted(sides)
    images = run.images.take(pa.array(rows, pa.int64())).select(["path", "hash"]).to_pylist()
    owners = np.searchsorted(np.cumsum(counts), rows, side="right").tolist()
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for row, owner, image in zip(rows, owners, images, strict=True):
        found[owner][image["path"]] = {"hash": image["hash"], "side": sides[row]}
    return found


def _thumbnail(item: Item, content: str, side: int) -> list[tuple[int, str, bytes]]:
    """Return the side, the hash and the thumbnail of an image that is still the same."""
    try:
        if item.read is None:
            is_same = image_hash(item.path) == content
            picture = open_image(item.path, min_side=side)
        else:
            whole = item.read()
            is_same = image_bytes_hash(whole, item.path) == content
            picture = open_image_bytes(whole, item.path, min_side=side)
    except (ImageError, OSError):
        return []
    return [(side, content, webp_thumbnail(picture, side))] if is_same else []


def _unpack(storage: Storage, key: str, directory: Path) -> int:
    """Write the thumbnails of a shard as files, where a report finds them."""
    table = pq.read_table(io.BytesIO(storage.read_bytes(f"pictures/{key}.parquet")))
    folder = Storage(str(directory / THUMBNAILS))
    for row in table.to_pylist():
        folder.write_bytes(f"{row['side']}/{row['hash']}.webp", row["content"])
    return len(table)
