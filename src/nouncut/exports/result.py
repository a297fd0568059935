"""What every export returns, and what it raises."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nouncut.errors import OutputError, printable_path

if TYPE_CHECKING:
    from nouncut.runs.run import Run


@dataclass(frozen=True)
class ExportResult:
    """What an export did.

    Parameters
    ----------
    path : Path
        The file or folder that was written.
    n_written : int
        Images that were written: rows, links, copies or sidecars.
    n_kept : int, default=0
        Images for which the destination held something already, which was left as it was.
    problems : list of str
        What could not be done, a line each.
    hint : str
        What to do with the export, such as the command that opens it; may be empty.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.exports.result import ExportResult
    >>> ExportResult(Path("clusters.csv"), n_written=200).problems
    []
    """

    path: Path
    n_written: int
    n_kept: int = 0
    problems: list[str] = field(default_factory=list)
    hint: str = ""


def require_pictures(run: Run, export: str) -> None:
    """Refuse a run that was made from a features file: it has no image files.

    Parameters
    ----------
    run : Run
        The run.
    export : str
        The export's name, for the message.

    Raises
    ------
    OutputError
        If the run has no image files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from types import SimpleNamespace
    >>> from nouncut.exports.result import require_pictures
    >>> run = SimpleNamespace(directory=Path("run"), manifest={"source_kind": "features"})
    >>> require_pictures(run, "tree")
    Traceback (most recent call last):
    ...
    nouncut.errors.OutputError: The run run was made from a features file, so there are no
    image files for the tree export. Export it to csv, jsonl or parquet instead.
    """
    if run.manifest.get("source_kind") == "features":
        raise OutputError(
            f"The run {printable_path(run.directory)} was made from a features file, so there are "
            f"no image files for the {export} export. Export it to csv, jsonl or parquet instead."
        )
