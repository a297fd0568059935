"""Results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from nouncut.compute.progress import ProgressLine

_MEGABYTE = 1e6
_GIGABYTE = 1e9


def results() -> Console:
    """Return the console for results."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


def notes() -> Console:
    """Return the console for everything else."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


def complain(message: str) -> None:
    """Print an error message."""
    notes().print(Text.assemble(("nouncut: ", "bold red"), message))


def print_json(value: Any) -> None:
    """Print JSON."""
    # ASCII only: the terminal's encoding may lack characters of a file name.
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def shown_bytes(n_bytes: float) -> str:
    """Return a size in MB or GB."""
    if n_bytes < _GIGABYTE:
        return f"{n_bytes / _MEGABYTE:.0f} MB"
    return f"{n_bytes / _GIGABYTE:.1f} GB"


class StageBars:
    """Shows progress: a bar with the time left on a terminal, otherwise a line per stage."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._line = ProgressLine()
        self._tasks: dict[str, TaskID] = {}
        self._bars: Progress | None = None
        if not quiet and notes().is_terminal:
            self._bars = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[amount]}", markup=False),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=notes(),
                transient=True,
            )

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report progress."""
        if self._quiet:
            return
        if self._bars is None:
            self._line(stage, done, total)
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, amount="")
        # A stage without steps has no known share; the bar just moves.
        shown = None if total == 1 and done == 0 else total
        amount = f"{done:,} of {total:,}" if total > 1 else ""
        self._bars.update(self._tasks[stage], completed=done, total=shown, amount=amount)
