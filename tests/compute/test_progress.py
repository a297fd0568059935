from __future__ import annotations

import io

from nouncut.compute.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report(stream: io.StringIO, calls: list[tuple[float, str, int, int]]) -> str:
    now = [0.0]
    line = ProgressLine(stream, clock=lambda: now[0])
    for seconds, *call in calls:
        now[0] = seconds
        line(*call)
    return stream.getvalue()


def test_a_terminal_shows_the_time_left():
    text = report(Terminal(), [(10, "encoding", 25, 100), (40, "encoding", 100, 100)])
    first, last = text.split("\r\x1b[K")[1:]
    assert first == "encoding: 25 of 100, 30 s left"
    assert last == "encoding: 100 in 40 s\n"


def test_every_stage_has_its_own_clock():
    calls = [(5, "reading", 9, 9), (9, "encoding", 1, 2), (13, "encoding", 2, 2)]
    assert report(io.StringIO(), calls) == "reading: 9 in 5 s\nencoding: 2 in 8 s\n"


def test_what_is_quick_is_not_mentioned():
    assert report(Terminal(), [(0.5, "reading", 9, 9), (1, "encoding", 2, 2)]) == ""
