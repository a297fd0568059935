"""How long the stages of a run take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nouncut.compute.progress import Progress, silent


class Stages:
    """Times stages, and tells of their beginning and end."""

    def __init__(
        self, progress: Progress | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress or silent
        self._clock = clock

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time what is done within."""
        start = self._clock()
        self._progress(stage, 0, 1)
        yield
        self._progress(stage, 1, 1)
        self.seconds[stage] = self.seconds.get(stage, 0.0) + round(self._clock() - start, 3)
