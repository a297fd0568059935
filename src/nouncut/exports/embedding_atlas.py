"""A Parquet file for Apple's Embedding Atlas: a map of the images, with thumbnails."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image
from scipy.sparse import csr_array

from nouncut.errors import ImageError, OutputError, printable_path
from nouncut.exports.result import ExportResult
from nouncut.exports.writing import new_file
from nouncut.images.read_ahead import load_ahead
from nouncut.images.thumbnails import encode_thumbnail

if TYPE_CHECKING:
    from nouncut.runs.run import Run

# The pictures themselves, so that they are shown wherever the file is opened.
_IMAGE_TYPE = pa.struct({"bytes": pa.binary()})
_NEIGHBORS_TYPE = pa.struct({"ids": pa.list_(pa.int64()), "distances": pa.list_(pa.float32())})
_N_NEIGHBORS = 15
_BATCH_ROWS = 1024


def export_embedding_atlas(
    run: Run, destination: Path, *, overwrite: bool = False, thumbnail_size: int = 128
) -> ExportResult:
    """Write a Parquet file for Embedding Atlas.

    Besides the assignments it has the columns ``x`` and ``y`` (the run's layout, else the first two
    principal components of its embedding), ``neighbors`` (the nearest in the run's graph) and
    ``image`` (a thumbnail).
    """
    if destination.suffix != ".parquet":
        raise OutputError(
            f"Embedding Atlas knows a Parquet file by its name: call {printable_path(destination)} "
            f"{printable_path(destination.name)}.parquet instead."
        )
    has_pictures = run.manifest.get("source_kind") != "features"
    options = {"--x": "x", "--y": "y", "--text": "name"}
    table = _with_layout(run)
    schema = table.schema
    if run.has_array("graph_data"):
        options["--neighbors"] = "neighbors"
        schema = schema.append(pa.field("neighbors", _NEIGHBORS_TYPE))
    if has_pictures:
        options["--image"] = "image"
        schema = schema.append(pa.field("image", _IMAGE_TYPE))
    problems: list[str] = []
    thumbnails = _thumbnails(run.paths(), thumbnail_size, problems) if has_pictures else iter(())
    with (
        new_file(destination, overwrite=overwrite) as part,
        pq.ParquetWriter(part, schema, compression="zstd") as writer,
    ):
        for batch in _batches(run, table, schema, thumbnails):
            writer.write_table(batch)
    hint = shlex.join(["embedding-atlas", printable_path(destination), *sum(options.items(), ())])
    return ExportResult(destination, table.num_rows, problems=problems, hint=hint)


def _with_layout(run: Run) -> pa.Table:
    layout = map_layout(run).astype(np.float32)
    return run.assignments.append_column("x", pa.array(layout[:, 0])).append_column(
        "y", pa.array(layout[:, 1])
    )


def map_layout(run: Run) -> NDArray[np.float64]:
    """Return where the images are on a map."""
    points = run.map()
    if points is None:
        raise OutputError(
            f"The run {printable_path(run.directory)} has no layout, embedding or features to draw "
            "a map from. Export it to csv, jsonl or parquet instead."
        )
    return np.asarray(points, dtype=np.float64)


def _batches(
    run: Run, table: pa.Table, schema: pa.Schema, thumbnails: Iterator[dict[str, bytes] | None]
) -> Iterator[pa.Table]:
    graph = run.graph() if "neighbors" in schema.names else None
    strongest = graph.data.max(initial=0.0) if graph is not None else 0.0
    for start in range(0, table.num_rows, _BATCH_ROWS):
        batch = table.slice(start, _BATCH_ROWS)
        columns = list(batch.columns)
        if graph is not None:
            rows = range(start, start + batch.num_rows)
            nearest = [_nearest(graph, row, strongest) for row in rows]
            columns.append(pa.array(nearest, _NEIGHBORS_TYPE))
        if "image" in schema.names:
            images = [next(thumbnails) for _ in range(batch.num_rows)]
            columns.append(pa.array(images, _IMAGE_TYPE))
        yield pa.Table.from_arrays(columns, schema=schema)


def _nearest(graph: csr_array, row: int, strongest: float) -> dict[str, NDArray[Any]]:
    """Return a row itself and the nearest to it in the graph.

    The distance is 0 at the strongest edge of the graph, and 1 where there is none. Embedding Atlas
    wants the same number of neighbours everywhere, so a row that has fewer fills up with itself.
    """
    span = slice(graph.indptr[row], graph.indptr[row + 1])
    ids, weights = graph.indices[span], graph.data[span]
    order = np.argsort(-weights, kind="stable")
    order = order[ids[order] != row][:_N_NEIGHBORS]
    n_own = 1 + _N_NEIGHBORS - len(order)
    return {
        "ids": np.append(np.full(n_own, row), ids[order]),
        "distances": np.append(np.zeros(n_own), 1 - weights[order] / strongest),
    }


def _thumbnails(
    paths: list[Path], size: int, problems: list[str]
) -> Iterator[dict[str, bytes] | None]:
    def encode(image: Image.Image) -> bytes:
        return encode_thumbnail(image, size)

    n_threads = os.cpu_count() or 1
    loaded = load_ahead(paths, encode, n_threads=n_threads, ahead=4 * n_threads, min_side=size)
    for _, result in loaded:
        if isinstance(result, ImageError):
            problems.append(str(result))
            yield None
        else:
            yield {"bytes": result}
