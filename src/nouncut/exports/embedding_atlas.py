"""A Parquet file for Apple's Embedding Atlas: a map of the images, with thumbnails."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError, OutputError, printable_path
from nouncut.exports.destination import export_file
from nouncut.exports.result import ExportResult
from nouncut.images.thumbnails import encode_thumbnail
from nouncut.runs.originals import open_original
from nouncut.runs.tables import real_paths

if TYPE_CHECKING:
    from nouncut.runs.run import Run

# The thumbnails themselves rather than paths, so that the file works on any machine.
_IMAGE_TYPE = pa.struct({"bytes": pa.binary()})
_NEIGHBORS_TYPE = pa.struct({"ids": pa.list_(pa.int64()), "distances": pa.list_(pa.float32())})
_N_NEIGHBORS = 15
_BATCH_ROWS = 1024


def export_embedding_atlas(
    run: Run, destination: Path, *, overwrite: bool = False, thumbnail_size: int = 128
) -> ExportResult:
    """Write the assignments with the columns ``x``, ``y``, ``neighbors`` and ``image``."""
    if destination.suffix != ".parquet":
        raise OutputError(
            "Embedding Atlas opens only files that end in .parquet. Choose the `output` "
            f"{printable_path(destination)}.parquet."
        )
    table = _with_map(run)
    schema = table.schema
    columns = {"--x": "x", "--y": "y", "--text": "name"}
    if run.has_array("graph_data"):
        schema = schema.append(pa.field("neighbors", _NEIGHBORS_TYPE))
        columns["--neighbors"] = "neighbors"
    if run.has_images:
        schema = schema.append(pa.field("image", _IMAGE_TYPE))
        columns["--image"] = "image"
    problems: list[str] = []
    with (
        export_file(destination, overwrite=overwrite) as file,
        pq.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        thumbnails = _thumbnails(run.images.slice(0, table.num_rows), thumbnail_size, problems)
        for batch in _batches(run, table, schema, thumbnails):
            writer.write_table(batch)
    hint = shlex.join(["embedding-atlas", printable_path(destination), *sum(columns.items(), ())])
    return ExportResult(destination, table.num_rows, problems=problems, hint=hint)


def _with_map(run: Run) -> pa.Table:
    points = run.map()
    if points is None:
        raise OutputError(
            f"The run {printable_path(run.directory)} has no features to draw a map from. Set `to` "
            "to csv, jsonl or parquet."
        )
    table = run.assignments
    for name, values in zip("xy", points.T.astype(np.float32), strict=True):
        table = table.append_column(name, pa.array(values))
    return table


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
    """Return a row and its nearest neighbours; the strongest edge has distance 0, no edge 1."""
    span = slice(graph.indptr[row], graph.indptr[row + 1])
    ids, weights = graph.indices[span], graph.data[span]
    order = np.argsort(-weights, kind="stable")
    order = order[ids[order] != row][:_N_NEIGHBORS]
    # Embedding Atlas wants lists of one length; the row itself fills the short ones.
    n_own = 1 + _N_NEIGHBORS - len(order)
    return {
        "ids": np.append(np.full(n_own, row), ids[order]),
        "distances": np.append(np.zeros(n_own), 1 - weights[order] / strongest),
    }


def _thumbnails(
    images: pa.Table, size: int, problems: list[str]
) -> Iterator[dict[str, bytes] | None]:
    def make(original: tuple[Path, str | None]) -> bytes | ImageError:
        try:
            return encode_thumbnail(open_original(*original, min_side=size), size)
        except ImageError as error:
            return error

    for start in range(0, images.num_rows, _BATCH_ROWS):
        batch = images.slice(start, _BATCH_ROWS)
        originals = zip(real_paths(batch), batch["hash"].to_pylist(), strict=True)
        for made in run_tasks(make, originals, count_threads(-1)):
            if isinstance(made, ImageError):
                problems.append(str(made))
            yield None if isinstance(made, ImageError) else {"bytes": made}
