"""The command is killed at every stage; the same command then ends with the same labels.

What was encoded is kept: a later run encodes only the rest. An earlier finished run stays whole
until the new one replaces it.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from forked_command import Fault, Outcome, cluster_command, run_forked
from scene import Scene, make_scene
from tally import Tally

from nouncut.errors import InputError
from nouncut.runs.run import open_run
from nouncut.store.store import FeatureStore


def attack_by_killing(folder: Path, scene: Scene, n_kills: int, *, seed: int = 0) -> Tally:
    """Kill the command before half as many file operations as `n_kills`, and at as many times."""
    tally = Tally("command killed")
    command = _Command(folder, scene)
    ended = command.run()
    expected = open_run(command.output).labels.tolist()
    # The first command has loaded the model's code; the next is as fast as those to be killed.
    command.forget()
    ended = command.run()
    for fault in _kills(ended, n_kills, random.Random(seed)):

        def attack(fault: Fault = fault) -> None:
            # A new run every time, on what earlier kills have left in the store.
            shutil.rmtree(command.output, ignore_errors=True)
            if command.random.random() < 0.3:
                command.forget()
            _check_killed(command, command.run(fault), expected)

        tally.attempt(str(fault), attack)
    return tally


def attack_update(folder: Path, scene: Scene, n_kills: int, *, seed: int = 0) -> Tally:
    """Kill an update of an edited run: it leaves the old run or the new one, never a mixture."""
    tally = Tally("update killed")
    command = _Command(folder, scene)
    assert command.run().code == 0
    run = open_run(command.output)
    run.rename(0, "mine")
    run.merge([1, 2])
    old = _state(command.output)
    before = shutil.copytree(command.output, folder / "before")
    more = make_scene(folder / "more", 32).photos
    arguments = ["update", str(command.output), str(more)]

    def update(fault: Fault | None = None) -> Outcome:
        return run_forked(arguments, command.cache, command.folder, fault)

    def start_again() -> None:
        shutil.rmtree(command.output)
        shutil.copytree(before, command.output)

    update()
    start_again()
    ended = update()
    assert ended.code == 0, ended.said
    new = _state(command.output)
    assert len(new[0]) > len(old[0])
    for fault in _kills(ended, n_kills, random.Random(seed)):

        def attack(fault: Fault = fault) -> None:
            start_again()
            killed = update(fault)
            assert killed.was_killed or killed.code == 0, f"{killed.code}: {killed.said}"
            with suppress(InputError):
                assert _state(command.output) in (old, new), "a mixture"
            again = update()
            assert again.code == 0, f"{again.code}: {again.said}"
            assert _state(command.output) == new, "another run afterwards"

        tally.attempt(str(fault), attack)
    return tally


def _state(directory: Path) -> tuple[list[int], list[str], list[str]]:
    run = open_run(directory)
    return run.labels.tolist(), run.names, [edit.text for edit in run.history]


def _kills(ended: Outcome, n_kills: int, chance: random.Random) -> Iterator[Fault]:
    half = (n_kills + 1) // 2
    for number in range(half):
        # One operation in each of `half` equal parts of a run.
        at = 1 + int((number + chance.random()) * ended.n_operations / half)
        yield Fault(kill_before_operation=at)
    for number in range(n_kills - half):
        seconds = (number + chance.random()) * ended.seconds / (n_kills - half)
        yield Fault(kill_after_seconds=seconds)


def _check_killed(command: _Command, ended: Outcome, expected: list[int]) -> None:
    assert ended.was_killed or ended.code == 0, f"{ended.code}: {ended.said}"
    if ended.code == 0:
        assert open_run(command.output).labels.tolist() == expected, "other labels"
        return
    # The run is finished, or refused.
    with suppress(InputError):
        assert open_run(command.output).labels.tolist() == expected, "a wrong run"
    kept = command.n_stored()
    assert FeatureStore(command.cache / "features").check() == [], "a damaged store"
    again = command.run()
    assert again.code == 0, f"{again.code}: {again.said}"
    assert "Traceback" not in again.said, again.said
    assert command.n_stored() >= kept, "features were lost"
    assert open_run(command.output).labels.tolist() == expected, "other labels afterwards"
    left = [path.name for path in command.output.rglob("*.nouncut-new")]
    assert not left, f"left behind: {left}"


class _Command:
    """The command on a scene, with a store of its own."""

    def __init__(self, folder: Path, scene: Scene) -> None:
        self.folder, self.scene = folder / "work", scene
        self.output, self.cache = self.folder / "run", self.folder / "cache"
        self.random = random.Random(1)
        self.folder.mkdir()

    def run(self, fault: Fault | None = None) -> Outcome:
        arguments = cluster_command(self.scene, self.output)
        return run_forked(arguments, self.cache, self.folder, fault)

    def forget(self) -> None:
        """Remove the run and all features."""
        shutil.rmtree(self.output, ignore_errors=True)
        shutil.rmtree(self.cache, ignore_errors=True)

    def n_stored(self) -> int:
        return sum(space.n_rows for space in FeatureStore(self.cache / "features").spaces())
