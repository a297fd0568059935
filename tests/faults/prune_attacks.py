"""The feature store is pruned, or removed, while a run is at work.

A run opens the database for each of its operations. A prune comes before one of them, or before
all. The run must end with the labels of a run that nothing disturbed.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scene import Scene
from tally import Tally

from nouncut import cluster_images
from nouncut.errors import OutputError
from nouncut.store.database import DATABASE_NAME
from nouncut.store.store import FeatureStore

# Called before every operation, if there is one: hooks of Python cannot be removed.
_watchers: list[Callable[[], None]] = []


def _watch(event: str, arguments: tuple) -> None:
    if _watchers and event == "sqlite3.connect" and DATABASE_NAME in os.fsdecode(arguments[0]):
        watcher = _watchers.pop()
        watcher()
        _watchers.append(watcher)


sys.addaudithook(_watch)


@contextmanager
def before_operations(harm: Callable[[], None], at: int | None) -> Iterator[list[int]]:
    """Do harm before the operation with a number, or before all; yield the number of the last."""
    count = [0]

    def watch() -> None:
        count[0] += 1
        if at in (None, count[0]):
            harm()

    _watchers.append(watch)
    try:
        yield count
    finally:
        _watchers.remove(watch)


def attack_by_pruning(folder: Path, scene: Scene, *, step: int = 1) -> Tally:
    """Prune before every `step`-th operation of a run, and before all operations of another."""
    tally = Tally("store pruned during a run")

    def harm() -> None:
        FeatureStore(folder / "store").prune(max_bytes=0)

    with before_operations(lambda: None, None) as count:
        expected = _labels(folder, scene)
    for at in [None, *range(1, count[0] + 1, step)]:

        def attack(at: int | None = at) -> None:
            with before_operations(harm, at):
                assert _labels(folder, scene) == expected, "other labels"

        tally.attempt(f"prune before operation {at or 'of any number'}", attack)
    return tally


def attack_by_removal(folder: Path, scene: Scene, *, step: int = 1) -> Tally:
    """Remove the store before every `step`-th operation; the run says so, and the next ends."""
    tally = Tally("store removed during a run")
    root = folder / "store"
    with before_operations(lambda: None, None) as count:
        expected = _labels(folder, scene)
    for at in range(2, count[0] + 1, step):

        def attack(at: int = at) -> None:
            try:
                with before_operations(lambda: shutil.rmtree(root, ignore_errors=True), at):
                    assert _labels(folder, scene) == expected, "other labels"
            except OutputError as error:
                if "was removed" not in str(error):
                    raise
            assert _labels(folder, scene) == expected, "other labels afterwards"

        tally.attempt(f"removal before operation {at}", attack)
    return tally


def _labels(folder: Path, scene: Scene) -> list[int]:
    """Return the labels of a new run with an empty store."""
    shutil.rmtree(folder / "store", ignore_errors=True)
    run = cluster_images(
        scene.photos,
        4,
        model=str(scene.model),
        vocabulary=scene.words,
        output=folder / "run",
        store=FeatureStore(folder / "store"),
        n_jobs=1,
        random_state=0,
    )
    labels: list[int] = run.labels.tolist()
    shutil.rmtree(folder / "run")
    return labels
