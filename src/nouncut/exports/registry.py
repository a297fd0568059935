"""The formats that a run can be exported to.

A new format is a new file, and a line in `EXPORTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nouncut.compute.files import AnyPath
from nouncut.errors import ParameterError
from nouncut.exports.destination import default_destination
from nouncut.exports.embedding_atlas import export_embedding_atlas
from nouncut.exports.fiftyone import DATA, LABELS, export_fiftyone
from nouncut.exports.result import ExportResult
from nouncut.exports.tables import export_table
from nouncut.exports.tree import export_tree, plan_tree
from nouncut.exports.xmp import export_xmp, plan_sidecars

if TYPE_CHECKING:
    from nouncut.runs.run import Run


@dataclass(frozen=True)
class Export:
    """A format: what writes it, its default name, and the files in it if it is a folder."""

    write: Callable[..., ExportResult]
    file_name: str
    files: tuple[str, ...] = ()

    @property
    def options(self) -> set[str]:
        """The keyword parameters of `write`."""
        return set(signature(self.write).parameters) - {"run", "destination"}


EXPORTS = {
    "csv": Export(partial(export_table, "csv"), "assignments.csv"),
    "jsonl": Export(partial(export_table, "jsonl"), "assignments.jsonl"),
    "parquet": Export(partial(export_table, "parquet"), "assignments.parquet"),
    "tree": Export(export_tree, "tree"),
    "fiftyone": Export(export_fiftyone, "fiftyone", (DATA, LABELS)),
    "embedding-atlas": Export(export_embedding_atlas, "embedding-atlas.parquet"),
    "xmp": Export(export_xmp, "xmp"),
}


def export_run(run: Run, to: str, output: AnyPath | None = None, **options: Any) -> ExportResult:
    """Write a finished run in the format of another program.

    Parameters
    ----------
    run : Run
        The run.
    to : {"csv", "jsonl", "parquet", "tree", "fiftyone", "embedding-atlas", "xmp"}
        The format: a table, a folder per cluster, a data set for FiftyOne or Embedding Atlas, or
        keywords in sidecar files for photo managers.
    output : path, optional
        The file or folder to write; by default one in the folder ``exports`` of the run.
    **options
        Options of the format: `overwrite` (bool) for files; `link` ("symlink", "hardlink" or
        "copy") for the tree; `beside` (bool) to write sidecars beside the images; `nested` (bool)
        for folders within folders, or keywords below keywords, as in `Run.tree`;
        `thumbnail_size` (int) for Embedding Atlas.

    Returns
    -------
    ExportResult
        Its `path`, the number of images `n_written` and `n_kept` (those that were there before),
        `problems` with single images, and a `hint` on how to use the export.

    Raises
    ------
    ParameterError
        If there is no such format or option.
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
    return export.write(run, _destination(run, export, output), **options)


def plan_export(
    run: Run, to: str, output: AnyPath | None = None, **options: Any
) -> list[tuple[Path, Path]]:
    """Return the pairs of source and target that `export_run` would write."""
    export = _find(to, options)
    destination = _destination(run, export, output)
    if to == "tree":
        return plan_tree(run, destination, nested=options.get("nested", False))
    if to == "xmp":
        return plan_sidecars(run, destination, beside=options.get("beside", False))
    targets = [destination / name for name in export.files] or [destination]
    return [(run.directory, target) for target in targets]


def _find(to: str, options: dict[str, Any]) -> Export:
    if to not in EXPORTS:
        raise ParameterError(f"`to` must be one of {', '.join(EXPORTS)}, not {to!r}.")
    unknown = sorted(options.keys() - EXPORTS[to].options)
    if unknown:
        raise ParameterError(f"The export to {to} has no option `{unknown[0]}`. Leave it out.")
    return EXPORTS[to]


def _destination(run: Run, export: Export, output: AnyPath | None) -> Path:
    return default_destination(run.directory, export.file_name) if output is None else Path(output)
