"""Progress of long stages, with the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

# Called with the name of the stage, the number of steps done, and their total.
Progress = Callable[[str, int, int], None]

_QUIET_SECONDS = 2.0


class ProgressLine:
    """Write progress to a stream; stages under two seconds are skipped.

    A terminal shows one line that is redrawn; a file gets one line at the end of each stage.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._start = clock()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report that `done` of `total` steps of a stage are done."""
        now = self._clock()
        # A stage begins when the one before it ends.
        elapsed = now - self._start
        is_last = done >= total
        if elapsed >= _QUIET_SECONDS:
            self._write(stage, done, total, elapsed, is_last)
        if is_last:
            self._start = now

    def _write(self, stage: str, done: int, total: int, elapsed: float, is_last: bool) -> None:
        on_terminal = self._stream.isatty()
        if is_last:
            text = f"{stage}: {total:,} in {shown_seconds(elapsed)}"
            self._stream.write(f"\r\x1b[K{text}\n" if on_terminal else f"{text}\n")
        elif on_terminal and done:
            left = shown_seconds(elapsed * (total - done) / done)
            self._stream.write(f"\r\x1b[K{stage}: {done:,} of {total:,}, {left} left")
        self._stream.flush()


def silent(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


def shown_seconds(seconds: float) -> str:
    """Return a duration such as "45 s", "3 min 5 s" or "2 h 10 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
