"""Progress of long stages: what is counted, done of all, elapsed and left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple, TextIO

# Called with the name of the stage, the number of steps done, and their total. A stage may report
# its beginning with none done. A stage whose steps are not counted has a total of 1.
Progress = Callable[[str, int, int], None]

# Shorter stages are not mentioned.
QUICK_SECONDS = 2.0

# What the steps of a stage are.
_UNITS = {
    "reading files": "files",
    # Some of them may turn out to be no images.
    "encoding images": "files",
    "reading words": "words",
    "looking up words": "words",
    "encoding nouns": "nouns",
    "reading nouns": "nouns",
    "encoding phrases": "phrases",
    "finding neighbours": "blocks",
    "evaluating prompts": "prompts",
    "weighing prompts": "prompts",
    "reading features": "shards",
    "sorting images by cells": "parts",
    "exchanging edges": "parts",
    "naming groups": "groups",
    "drawing the map": "steps",
    "making thumbnails": "thumbnails",
}
_PERCENT = frozenset({"finding eigenvectors", "comparing numbers of groups"})
# The first steps tell the time left if they are at least this share of all.
_TELLING_SHARE = 0.05
# A log gets its next line after twice the time, but within this many seconds.
_LONGEST_SILENCE = 60.0


class Times(NamedTuple):
    """Seconds that a stage has taken, and those it will probably still take, if that is known."""

    elapsed: float
    left: float | None


@dataclass
class _Stage:
    start: float
    # When the first step was reported, and how many were done by then. It may be slower than the
    # others: it may have to load a model.
    first: float | None = None
    first_done: int = 0
    # When a log gets its next line.
    due: float = QUICK_SECONDS

    def left(self, now: float, done: int, total: int) -> float | None:
        """Return the time that the remaining steps will take at the pace of those done."""
        if self.first is not None and done > self.first_done:
            return (now - self.first) * (total - done) / (done - self.first_done)
        if done >= _TELLING_SHARE * total:
            return (now - self.start) * (total - done) / done
        return None


class StageClock:
    """Keeps the times of the stages that are under way."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # When the last stage began or ended: one that does not report its beginning began then.
        self._last = clock()
        self._ended: tuple[str, int] | None = None
        self.stages: dict[str, _Stage] = {}

    def is_late(self, stage: str, done: int, total: int) -> bool:
        """Return whether a report of the stage that has just ended was overtaken by the last."""
        return 0 < done < total and self._ended == (stage, total)

    def report(self, stage: str, done: int, total: int) -> Times:
        """Return the times of a stage, given its progress."""
        now = self._clock()
        if not done or stage not in self.stages:
            self.stages[stage] = _Stage(self._last if done else now)
        own = self.stages[stage]
        left = own.left(now, done, total)
        if done and own.first is None:
            own.first, own.first_done = now, done
        if done >= total:
            del self.stages[stage]
            self._ended = stage, total
        if not done or done >= total:
            self._last = now
        return Times(now - own.start, left)


class ProgressLine:
    """Write progress to a stream; stages under two seconds are skipped.

    A terminal shows one line that is redrawn. A file gets a line after 2, 4, 8, ... seconds of a
    stage, and at its end.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream or sys.stderr
        self._clock = StageClock(clock)
        self._lock = Lock()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report that `done` of `total` steps of a stage are done; threads may do so at once."""
        with self._lock:
            if not self._clock.is_late(stage, done, total):
                self._report(stage, done, total)

    def _report(self, stage: str, done: int, total: int) -> None:
        times = self._clock.report(stage, done, total)
        if done >= total:
            if times.elapsed >= QUICK_SECONDS:
                self._write(describe_end(stage, total, times.elapsed), is_last=True)
        elif done and self._is_due(self._clock.stages[stage], times):
            self._write(f"{stage}: {describe_amount(stage, done, total)}, {describe_times(times)}")

    def _is_due(self, stage: _Stage, times: Times) -> bool:
        elapsed, left = times
        if self._stream.isatty() or elapsed < stage.due:
            return elapsed >= stage.due
        stage.due = elapsed + min(elapsed, _LONGEST_SILENCE)
        # The end gets a line in any case.
        return left is None or left >= QUICK_SECONDS

    def _write(self, text: str, is_last: bool = False) -> None:
        on_terminal = self._stream.isatty()
        end = "\n" if is_last or not on_terminal else ""
        self._stream.write(f"\r\x1b[K{text}{end}" if on_terminal else f"{text}{end}")
        self._stream.flush()


def silent(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


def describe_amount(stage: str, done: int, total: int) -> str:
    """Return how much is done, such as "320 of 600 images"; "" if the stage does not count."""
    if stage in _PERCENT:
        return f"{100 * done // total} %"
    if total == 1 and stage not in _UNITS:
        return ""
    return f"{done:,} of {count_of(stage, total)}"


def describe_times(times: Times) -> str:
    """Return the time since the beginning and the time left, such as "5 s, about 4 s left"."""
    taken = shown_seconds(times.elapsed)
    return taken if times.left is None else f"{taken}, about {shown_seconds(times.left)} left"


def describe_end(stage: str, total: int, elapsed: float) -> str:
    """Return what a finished stage did, such as "encoding images: 600 images in 12 s"."""
    if stage in _PERCENT or (total == 1 and stage not in _UNITS):
        return f"{stage}: {shown_seconds(elapsed)}"
    return f"{stage}: {count_of(stage, total)} in {shown_seconds(elapsed)}"


def count_of(stage: str, number: int) -> str:
    """Return a number with what the stage counts, such as "1 image" or "600 images"."""
    unit = _UNITS.get(stage, "")
    return f"{number:,} {unit if number != 1 else unit.removesuffix('s')}".strip()


def shown_seconds(seconds: float) -> str:
    """Return a duration such as "45 s", "3 min 5 s" or "2 h 10 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
