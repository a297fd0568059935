"""What every export returns, and what some of them need."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nouncut.errors import OutputError, printable_path

if TYPE_CHECKING:
    from nouncut.runs.run import Run


@dataclass(frozen=True)
class ExportResult:
    """What an export did: `path` holds `n_written` new images and `n_kept` that it held before.

    `problems` has a line for each image that was left out or changed, `hint` says what to do next.
    """

    path: Path
    n_written: int
    n_kept: int = 0
    problems: list[str] = field(default_factory=list)
    hint: str = ""


def require_image_files(run: Run, to: str) -> None:
    """Refuse a run of a features file."""
    if not run.has_images:
        raise OutputError(
            f"The run {printable_path(run.directory)} was made from a features file, so it has no "
            f"image files for the export to {to}. Set `to` to csv, jsonl or parquet."
        )
