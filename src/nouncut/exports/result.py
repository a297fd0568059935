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
    """What an export did, or would do: `n_written` images are new in `path`, `n_kept` were there.

    `files` are the files that were written, `n_removed` counts those of an earlier export that
    were removed. `problems` has a line for each image that was left out or changed, `hint` says
    what to do next. In a preview, `is_preview` is True and nothing was done.
    """

    path: Path
    n_written: int
    n_kept: int = 0
    problems: list[str] = field(default_factory=list)
    hint: str = ""
    files: list[Path] = field(default_factory=list)
    n_removed: int = 0
    is_preview: bool = False

    @property
    def n_images(self) -> int:
        """Number of images in the export."""
        return self.n_written + self.n_kept

    @property
    def n_files(self) -> int:
        """Number of files that were written."""
        return len(self.files)


def require_image_files(run: Run, to: str) -> None:
    """Refuse a run of a features file."""
    if not run.has_images:
        raise OutputError(
            f"The run {printable_path(run.directory)} was made from a features file, so it has no "
            f"image files for the export to {to}. Set `to` to csv, jsonl or parquet."
        )
