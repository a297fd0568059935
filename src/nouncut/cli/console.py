"""Results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.text import Text

from nouncut.compute.progress import ProgressLine

if TYPE_CHECKING:
    from nouncut.cli.live_bars import LiveBars

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
    """Shows progress: bars with the time left on a terminal, otherwise lines."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = notes()
        self._show: LiveBars | ProgressLine | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._show is not None and not isinstance(self._show, ProgressLine):
            self._show.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report progress."""
        if self._quiet:
            return
        if self._show is None:
            self._show = self._start()
        self._show(stage, done, total)

    def note(self, text: str) -> None:
        """Print a line above the bars, unless all should be quiet."""
        if not self._quiet:
            self._console.print(text)

    def _start(self) -> LiveBars | ProgressLine:
        if not self._console.is_terminal:
            return ProgressLine()
        from nouncut.cli.live_bars import LiveBars

        return LiveBars(self._console)
