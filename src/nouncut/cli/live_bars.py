"""Progress on a terminal: a bar for every stage that is under way."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from nouncut.compute.progress import (
    QUICK_SECONDS,
    StageClock,
    Times,
    describe_amount,
    describe_end,
    describe_times,
)


class LiveBars:
    """Shows the stages that are under way; those that took a while leave a line."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._now = StageClock(clock), clock
        self._lock = Lock()
        self._tasks: dict[str, TaskID] = {}
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amount]}", markup=False),
            _TimesColumn(clock),
            console=console,
            transient=True,
        )

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report progress; threads may do so at once."""
        with self._lock:
            if self._clock.is_late(stage, done, total):
                return
            times = self._clock.report(stage, done, total)
            if done >= total:
                self._end(stage, total, times)
            else:
                self._update(stage, done, total, times)

    def stop(self) -> None:
        """Remove the bars."""
        self._bars.stop()

    def _update(self, stage: str, done: int, total: int, times: Times) -> None:
        self._bars.start()
        if stage not in self._tasks:
            # A stage within another one is indented.
            name = "  " * len(self._tasks) + stage
            self._tasks[stage] = self._bars.add_task(
                name, total=None, amount="", times=times, reported=self._now()
            )
        self._bars.update(
            self._tasks[stage],
            completed=done,
            # Nothing is known of the share of a stage before its first step: the bar just moves.
            total=total if done else None,
            amount=describe_amount(stage, done, total),
            times=times,
            reported=self._now(),
        )

    def _end(self, stage: str, total: int, times: Times) -> None:
        task = self._tasks.pop(stage, None)
        if task is not None:
            self._bars.remove_task(task)
        if times.elapsed >= QUICK_SECONDS and not self._tasks:
            self._bars.console.print(describe_end(stage, total, times.elapsed))


class _TimesColumn(ProgressColumn):
    """The time since the beginning of a stage, and the time left."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._now = clock

    def render(self, task: Task) -> Text:
        """Return the times, which go on between reports."""
        times: Times = task.fields["times"]
        since = self._now() - task.fields["reported"]
        left = None if times.left is None else max(0.0, times.left - since)
        return Text(describe_times(Times(times.elapsed + since, left)))
