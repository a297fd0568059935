"""Progress on a terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console

from nouncut.cli.live_bars import LiveBars

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def show(calls):
    """Return every text that the bars showed, and the lines that they left."""
    now = [0.0]
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120, color_system=None)
    bars = LiveBars(console, clock=lambda: now[0])
    frames = []
    for seconds, *call in calls:
        now[0] = seconds
        bars(*call)
        if bars._bars.tasks:
            paper = Console(file=io.StringIO(), width=120, color_system=None)
            paper.print(bars._bars.get_renderable())
            lines = paper.file.getvalue().splitlines()
            frames.append([" ".join(line.split()) for line in lines])
    n_tasks = len(bars._bars.tasks)
    bars.stop()
    assert n_tasks == 0
    return frames, ESCAPE.sub("", file.getvalue())


def test_bars_tell_what_is_done_and_left():
    stage = "encoding images"
    frames, left = show([(0, stage, 0, 600), (2, stage, 100, 600), (12, stage, 600, 600)])
    assert frames[0][0].startswith("encoding images ")
    assert frames[1][0].endswith("100 of 600 files 2 s, about 10 s left")
    assert "encoding images: 600 files in 12 s" in left


def test_a_stage_within_another_is_shown_below_it_and_leaves_no_line():
    frames, left = show(
        [
            (0, "clustering", 0, 1),
            (3, "finding neighbours", 10, 40),
            (9, "finding neighbours", 40, 40),
            # A thread that was overtaken.
            (9, "finding neighbours", 39, 40),
            (10, "clustering", 1, 1),
        ],
    )
    assert [len(frame) for frame in frames] == [1, 2, 1, 1]
    assert frames[1][1].endswith("10 of 40 blocks 3 s, about 9 s left")
    assert "clustering: 10 s" in left
    assert "finding neighbours: 40" not in left


def test_short_stages_leave_no_line():
    _, left = show([(0, "writing the run", 0, 1), (1, "writing the run", 1, 1)])
    assert "writing the run:" not in left
