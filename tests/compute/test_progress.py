from __future__ import annotations

import io

import pytest

from nouncut.compute.progress import ProgressLine, StageClock, shown_seconds


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


def test_a_terminal_shows_what_is_counted_and_the_time_left():
    stage = "encoding images"
    text = report(Terminal(), [(0, stage, 0, 100), (10, stage, 25, 100), (40, stage, 100, 100)])
    first, last = text.split("\r\x1b[K")[1:]
    assert first == "encoding images: 25 of 100 files, 10 s, about 30 s left"
    assert last == "encoding images: 100 files in 40 s\n"


def test_the_first_step_loads_the_model_and_does_not_tell_the_pace():
    stage = "encoding images"
    calls = [(0, stage, 0, 1000), (20, stage, 8, 1000), (21, stage, 16, 1000)]
    first, second = report(Terminal(), calls).split("\r\x1b[K")[1:]
    assert first == "encoding images: 8 of 1,000 files, 20 s"
    assert second == "encoding images: 16 of 1,000 files, 21 s, about 2 min 3 s left"


def test_every_stage_has_its_own_clock():
    calls = [(5, "reading files", 9, 9), (9, "training", 1, 2), (13, "training", 2, 2)]
    lines = report(io.StringIO(), calls).splitlines()
    assert lines == [
        "reading files: 9 files in 5 s",
        "training: 1 of 2, 4 s, about 4 s left",
        "training: 2 in 8 s",
    ]


def test_a_log_gets_lines_further_and_further_apart():
    calls = [(second, "encoding nouns", second, 1000) for second in range(1, 1001)]
    lines = report(io.StringIO(), calls).splitlines()
    assert lines[0].startswith("encoding nouns: 2 of 1,000 nouns, 2 s")
    assert lines[3].startswith("encoding nouns: 16 of 1,000 nouns, 16 s")
    assert lines[-1] == "encoding nouns: 1,000 nouns in 16 min 40 s"
    assert 15 < len(lines) < 25


def test_steps_that_are_not_counted_are_not_shown_as_one():
    calls = [
        (0, "clustering", 0, 1),
        (1, "finding eigenvectors", 0, 100),
        (4, "finding eigenvectors", 50, 100),
        (7, "finding eigenvectors", 100, 100),
        (9, "clustering", 1, 1),
        (9, "encoding images", 0, 1),
        (12, "encoding images", 1, 1),
    ]
    assert report(io.StringIO(), calls).splitlines() == [
        "finding eigenvectors: 50 %, 3 s, about 3 s left",
        "finding eigenvectors: 6 s",
        "clustering: 9 s",
        "encoding images: 1 file in 3 s",
    ]


def test_what_is_quick_is_not_mentioned():
    calls = [(0.5, "reading files", 9, 9), (1, "encoding images", 2, 2)]
    assert report(Terminal(), calls) == ""


def test_a_report_that_was_overtaken_does_not_open_the_stage_again():
    clock = StageClock()
    clock.report("finding neighbours", 9, 9)
    assert clock.is_late("finding neighbours", 8, 9)
    assert not clock.is_late("finding neighbours", 0, 9)
    assert not clock.is_late("weighing prompts", 8, 9)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7800, "2 h 10 min")],
)
def test_durations(seconds, shown):
    assert shown_seconds(seconds) == shown
