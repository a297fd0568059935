"""A Parquet file for Apple's Embedding Atlas: a map of the images, with thumbnails."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError, OutputError, printable_path
from nouncut.exports.destination import check_export_file, export_file
from nouncut.exports.result import ExportResult
from nouncut.images.thumbnails import encode_thumbnail
from nouncut.runs.originals import open_original
from nouncut.runs.tables import real_paths

if TYPE_CHECKING:
    from nouncut.exports.part import Part

# The thumbnails themselves rather than paths, so that the file works on any machine.
_IMAGE_TYPE = pa.struct({"bytes": pa.binary()})
_NEIGHBORS_TYPE = pa.struct({"ids": pa.list_(pa.int64()), "distances": pa.list_(pa.float32())})
_N_NEIGHBORS = 15
# Columns that are shown as bar charts beside the map.
_CHARTS = {"name": "Group", "second_name": "Second choice", "outlier": "Fits nowhere well"}
_BATCH_ROWS = 1024


def export_embedding_atlas(
    part: Part,
    destination: Path,
    *,
    overwrite: bool = False,
    thumbnail_size: int = 128,
    preview: bool = False,
) -> ExportResult:
    """Write the images with their place on the map, thumbnails, and how the map is to be shown."""
    if destination.suffix != ".parquet":
        raise OutputError(
            "Embedding Atlas opens only files that end in .parquet. Choose the `output` "
            f"{printable_path(destination)}.parquet."
        )
    table = _with_map(part)
    schema, columns = _schema(part, table)
    labels, state = (destination.with_suffix(end) for end in (".labels.parquet", ".state.json"))
    files = [labels, state, destination]
    for file in files:
        check_export_file(file, overwrite=overwrite)
    options = {f"--{what}": name for what, name in columns.items()}
    options |= {"--labels": printable_path(labels), "--state": printable_path(state)}
    hint = shlex.join(["embedding-atlas", printable_path(destination), *sum(options.items(), ())])
    problems: list[str] = []
    if not preview:
        with ExitStack() as stack:
            opened = [stack.enter_context(export_file(f, overwrite=overwrite)) for f in files]
            pq.write_table(_labels(table), opened[0])
            opened[1].write(json.dumps(_state(columns), indent=1).encode())
            writer = stack.enter_context(pq.ParquetWriter(opened[2], schema, compression="zstd"))
            thumbnails = _thumbnails(part.images, thumbnail_size, problems)
            for batch in _batches(part, table, schema, thumbnails):
                writer.write_table(batch)
    return ExportResult(destination, table.num_rows, 0, problems, hint, files, is_preview=preview)


def _schema(part: Part, table: pa.Table) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns of the file, and which of them Embedding Atlas uses for what."""
    schema, columns = table.schema, {"x": "x", "y": "y", "text": "file"}
    if part.run.has_array("graph_data"):
        schema = schema.append(pa.field("neighbors", _NEIGHBORS_TYPE))
        columns["neighbors"] = "neighbors"
    if part.run.has_images:
        # The first columns are those that the table of the program shows without scrolling.
        schema = schema.insert(0, pa.field("image", _IMAGE_TYPE))
        columns["image"] = "image"
    return schema, columns


def _state(columns: dict[str, str]) -> dict[str, Any]:
    """Return what the program shows at first: the map in the colours of the groups, and charts."""
    charts = [
        {"type": "embedding", "title": "Map", "data": {**columns, "category": "name"}},
        {"type": "predicates", "title": "SQL Predicates"},
        {"type": "instances", "title": "Images"},
        *(
            {"type": "count-plot", "title": title, "data": {"field": field}}
            for field, title in _CHARTS.items()
        ),
    ]
    styles = {"image": {"renderer": "image"}} if "image" in columns else {}
    return {
        "charts": {str(number + 1): chart for number, chart in enumerate(charts)},
        "columnStyles": styles,
    }


def _labels(table: pa.Table) -> pa.Table:
    """Return the names of the groups and the middle of their images."""
    found = table.select(["name", "x", "y"]).drop_null()
    names, places = np.unique(found["name"].to_numpy(), return_inverse=True)
    points = np.column_stack([found["x"], found["y"]]).reshape(-1, 2)
    middles = [np.median(points[places == place], axis=0) for place in range(len(names))]
    x, y = np.array(middles, dtype=np.float32).reshape(-1, 2).T
    texts = pa.array(names, pa.string())
    # The program's help asks for "text"; what it shows (versions 0.21 to 0.26) is "content".
    return pa.table({"x": x, "y": y, "text": texts, "content": texts})


def _with_map(part: Part) -> pa.Table:
    points = part.run.map()
    if points is None:
        raise OutputError(
            f"The run {printable_path(part.run.directory)} has no features to draw a map from. Set "
            "`to` to csv, jsonl or parquet."
        )
    table = part.assignments
    file_names = [os.path.basename(path) for path in table["path"].to_pylist()]
    table = table.add_column(0, "file", pa.array(file_names, pa.string()))
    for name, values in zip("xy", points[part.rows].T.astype(np.float32), strict=True):
        table = table.append_column(name, pa.array(values))
    return table


def _batches(
    part: Part, table: pa.Table, schema: pa.Schema, thumbnails: Iterator[dict[str, bytes] | None]
) -> Iterator[pa.Table]:
    graph = part.run.graph() if "neighbors" in schema.names else None
    if graph is not None and not part.is_all:
        graph = graph[part.rows][:, part.rows]
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
            columns.insert(0, pa.array(images, _IMAGE_TYPE))
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
