"""What the steps of a run share: settings, the feature store, progress and timing."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from nouncut.compute.progress import Progress, silent
from nouncut.runs.settings import Settings
from nouncut.store.store import FeatureStore

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """A run in the making."""

    settings: Settings
    store: FeatureStore
    progress: Progress = silent
    n_jobs: int | None = -1
    clock: Callable[[], float] = time.perf_counter
    # How long every stage took.
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a stage that reports its own progress."""
        start = self.clock()
        yield
        took = self.clock() - start
        self.seconds[name] = round(self.seconds.get(name, 0.0) + took, 3)
        _logger.info("%s took %.1f s", name, took)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage whose steps are not counted, and report its beginning and its end."""
        with self.timed(name):
            self.progress(name, 0, 1)
            yield
            self.progress(name, 1, 1)


@contextmanager
def recorded_warnings() -> Iterator[Callable[[], list[str]]]:
    """Record user warnings, which belong in the manifest; others are issued at the end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: list(dict.fromkeys(str(w.message) for w in caught if _is_for_user(w)))
    for warning in caught:
        if not _is_for_user(warning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


def _is_for_user(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, UserWarning)
