"""The formats that a run can be exported to.

A new format is a new file, and a line in `EXPORTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nouncut.compute.files import AnyPath
from nouncut.errors import ParameterError
from nouncut.exports.album import export_album
from nouncut.exports.destination import default_destination
from nouncut.exports.embedding_atlas import export_embedding_atlas
from nouncut.exports.fiftyone import export_fiftyone
from nouncut.exports.part import part_of
from nouncut.exports.result import ExportResult, require_image_files
from nouncut.exports.tables import export_table
from nouncut.exports.tree import export_tree
from nouncut.exports.xmp import export_xmp

if TYPE_CHECKING:
    from nouncut.runs.run import Run


@dataclass(frozen=True)
class Export:
    """A format: what writes it, its default name, what it is, and whether it needs image files."""

    write: Callable[..., ExportResult]
    file_name: str
    about: str
    needs_images: bool = False
    # Whether it shows the map or features, which a large run has of its sample.
    needs_arrays: bool = False

    @property
    def options(self) -> set[str]:
        """The keyword parameters of `write`, which are the options of the format."""
        return set(signature(self.write).parameters) - {"part", "destination", "preview"}


EXPORTS = {
    "csv": Export(partial(export_table, "csv"), "assignments.csv", "a table for spreadsheets"),
    "jsonl": Export(partial(export_table, "jsonl"), "assignments.jsonl", "a table as JSON lines"),
    "parquet": Export(partial(export_table, "parquet"), "assignments.parquet", "a table"),
    "tree": Export(export_tree, "tree", "a folder per group", needs_images=True),
    "album": Export(export_album, "album", "a photo album to share", needs_images=True),
    "xmp": Export(
        export_xmp, "xmp", "keywords in sidecar files for photo managers", needs_images=True
    ),
    "fiftyone": Export(
        export_fiftyone,
        "fiftyone",
        "a data set for FiftyOne",
        needs_images=True,
        needs_arrays=True,
    ),
    "embedding-atlas": Export(
        export_embedding_atlas,
        "embedding-atlas.parquet",
        "a map for Embedding Atlas",
        needs_arrays=True,
    ),
}


def export_run(
    run: Run,
    to: str,
    output: AnyPath | None = None,
    *,
    rows: Iterable[int] | None = None,
    groups: Iterable[int | str] | None = None,
    preview: bool = False,
    **options: Any,
) -> ExportResult:
    """Write a finished run in the format of another program.

    Parameters
    ----------
    run : Run
        The run.
    to : {"csv", "jsonl", "parquet", "tree", "album", "xmp", "fiftyone", "embedding-atlas"}
        The format: a table, a folder per cluster, a photo album to share, keywords in sidecar
        files for photo managers, or a data set for FiftyOne or Embedding Atlas.
    output : path, optional
        The file or folder to write; by default one in the folder ``exports`` of the run.
    rows : iterable of int, optional
        Row numbers of the images to export; by default all images.
    groups : iterable of int or str, optional
        Numbers or names of the clusters to export, in addition to `rows`.
    preview : bool, default=False
        Return what would be written, and write nothing.
    **options
        Options of the format: `overwrite` (bool) for files; `link` ("symlink", "hardlink" or
        "copy") for the tree; `nested` (bool) for folders within folders, or keywords below
        keywords, as in `Run.tree`; `beside` (bool) to write sidecars beside the images, and
        `program` ("digikam", "darktable" or "lightroom") to name them as it does;
        `file_names` (bool) and `title` (str) for the album; `thumbnail_size` (int) for Embedding
        Atlas.

    Returns
    -------
    ExportResult
        Its `path`, the number of images `n_written` and `n_kept` (those that were there before),
        the `files` written, `n_removed` (files of an earlier export), `problems` with single
        images, and a `hint` on how to use the export.

    Raises
    ------
    ParameterError
        If there is no such format or option.
    InputError
        If there is no such image or cluster.
    OutputError
        If the export cannot be written, or if the format needs image files and the run has none.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> from nouncut.exports.registry import export_run
    >>> from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
    >>> from nouncut.runs.writer import RunContents, RunWriter
    >>> row = {"path": "/pets/rex.jpg", "cluster": 0, "name": "dog", "outlier": False}
    >>> dog = {"cluster": 0, "name": "dog", "size": 1, "exemplars": [0], "borderline": []}
    >>> contents = RunContents(
    ...     manifest={"source_kind": "images"},
    ...     assignments=pa.Table.from_pylist([row], schema=ASSIGNMENTS_SCHEMA),
    ...     clusters=pa.Table.from_pylist([dog], schema=CLUSTERS_SCHEMA),
    ...     images=images_table(["/pets/rex.jpg"]),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder, RunWriter(folder) as writer:
    ...     exported = export_run(writer.finish(contents), "csv")
    ...     print(exported.path.relative_to(folder).as_posix())
    ...     print(exported.path.read_text())
    exports/assignments.csv
    path,cluster,name,confidence,second_cluster,second_name,second_confidence,outlier
    /pets/rex.jpg,0,dog,,,,,false
    """
    export = _find(to, options)
    if export.needs_images:
        require_image_files(run, to)
    destination = _destination(run, export, output)
    sample = run.sample if export.needs_arrays else None
    if sample is None:
        return export.write(part_of(run, rows, groups), destination, preview=preview, **options)
    if rows is not None:
        rows = [sample.row_of(row) for row in rows]
    done = export.write(part_of(sample, rows, groups), destination, preview=preview, **options)
    said = f"{done.n_images:,} of {run.n_images:,} images: only they have features and a place"
    return replace(done, hint=f"{said} on the map. {done.hint}".strip())


def _find(to: str, options: dict[str, Any]) -> Export:
    if to not in EXPORTS:
        raise ParameterError(f"`to` must be one of {', '.join(EXPORTS)}, not {to!r}.")
    unknown = sorted(options.keys() - EXPORTS[to].options)
    if unknown:
        raise ParameterError(f"The export to {to} has no option `{unknown[0]}`. Leave it out.")
    return EXPORTS[to]


def _destination(run: Run, export: Export, output: AnyPath | None) -> Path:
    return default_destination(run.directory, export.file_name) if output is None else Path(output)
