"""A finished run in the formats of other programs.

A new format is a new file here, and a line in `EXPORTS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nouncut.errors import OutputError
from nouncut.exports.csv_text import export_csv
from nouncut.exports.embedding_atlas import export_embedding_atlas
from nouncut.exports.fiftyone import DATA, LABELS, export_fiftyone
from nouncut.exports.jsonl import export_jsonl
from nouncut.exports.parquet import export_parquet
from nouncut.exports.result import ExportResult
from nouncut.exports.tables import check_table_file, write_table_file
from nouncut.exports.tree import export_tree, plan_tree
from nouncut.exports.xmp import export_xmp, plan_sidecars

if TYPE_CHECKING:
    from nouncut.runs.run import Run

__all__ = [
    "EXPORTS",
    "Export",
    "ExportResult",
    "OutputError",
    "check_table_file",
    "export_csv",
    "export_embedding_atlas",
    "export_fiftyone",
    "export_jsonl",
    "export_parquet",
    "export_run",
    "export_tree",
    "export_xmp",
    "plan_export",
    "plan_sidecars",
    "plan_tree",
    "write_table_file",
]


@dataclass(frozen=True)
class Export:
    """A format that runs can be exported to."""

    summary: str
    write: Callable[..., ExportResult]
    file_name: str
    options: tuple[str, ...]
    parts: tuple[str, ...] = ()


EXPORTS: dict[str, Export] = {
    "csv": Export("a table for spreadsheets", export_csv, "assignments.csv", ("overwrite",)),
    "jsonl": Export("one JSON object per image", export_jsonl, "assignments.jsonl", ("overwrite",)),
    "parquet": Export(
        "a table with its types", export_parquet, "assignments.parquet", ("overwrite",)
    ),
    "tree": Export(
        "a folder per cluster, with links to the images or copies", export_tree, "tree", ("link",)
    ),
    "fiftyone": Export(
        "a dataset directory for FiftyOne",
        export_fiftyone,
        "fiftyone",
        ("overwrite",),
        (DATA, LABELS),
    ),
    "embedding-atlas": Export(
        "a map for Embedding Atlas",
        export_embedding_atlas,
        "embedding-atlas.parquet",
        ("overwrite", "thumbnail_size"),
    ),
    "xmp": Export("sidecars with keywords for photo managers", export_xmp, "xmp", ("beside",)),
}

_EXPORTS_FOLDER = "exports"


def export_run(
    run: Run, to: str, destination: str | os.PathLike[str] | None = None, **options: Any
) -> ExportResult:
    """Export a finished run.

    Parameters
    ----------
    run : Run
        The run.
    to : str
        The format, one of `EXPORTS`.
    destination : path, optional
        The file or folder to write; by default one in the folder ``exports`` of the run.
    **options
        Those of the format: `overwrite` for files, `link` for the tree, `beside` for sidecars,
        `thumbnail_size` for Embedding Atlas.

    Returns
    -------
    ExportResult
        What was written and what was not.

    Raises
    ------
    OutputError
        If there is no such format or option, or the export cannot be made.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from types import SimpleNamespace
    >>> import pyarrow as pa
    >>> from nouncut.exports.registry import export_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pa.table({"path": ["/a.jpg"], "name": ["cat"]})
    ...     run = SimpleNamespace(directory=Path(folder), assignments=table)
    ...     export_run(run, "csv").path.relative_to(folder).as_posix()
    'exports/assignments.csv'
    """
    export = _find(to, options)
    return export.write(run, _destination(run, export, destination), **options)


def plan_export(
    run: Run, to: str, destination: str | os.PathLike[str] | None = None, **options: Any
) -> list[tuple[Path, Path]]:
    """Return what an export would write, and write nothing."""
    export = _find(to, options)
    place = _destination(run, export, destination)
    if to == "tree":
        return plan_tree(run, place)
    if to == "xmp":
        return plan_sidecars(run, place, **options)
    targets = [place / part for part in export.parts] or [place]
    return [(run.directory, target) for target in targets]


def _find(to: str, options: dict[str, Any]) -> Export:
    if to not in EXPORTS:
        raise OutputError(f"There is no export to {to!r}. Choose one of {', '.join(EXPORTS)}.")
    export = EXPORTS[to]
    unknown = sorted(set(options) - set(export.options))
    if unknown:
        raise OutputError(
            f"The export to {to} has no option {unknown[0]}. It has: {', '.join(export.options)}."
        )
    return export


def _destination(run: Run, export: Export, given: str | os.PathLike[str] | None) -> Path:
    return run.directory / _EXPORTS_FOLDER / export.file_name if given is None else Path(given)
