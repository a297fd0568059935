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
    """What an export did."""

    path: Path
    n_written: int
    n_kept: int = 0
    problems: list[str] = field(default_factory=list)
    hint: str = ""


def require_pictures(run: Run, export: str) -> None:
    """Refuse a run that was made from a features file: it has no image files."""
    if run.manifest.get("source_kind") == "features":
        raise OutputError(
            f"The run {printable_path(run.directory)} was made from a features file, so there are "
            f"no image files for the {export} export. Export it to csv, jsonl or parquet instead."
        )
