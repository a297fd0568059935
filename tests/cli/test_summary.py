"""Sentences about a run: before its long part and at its end."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nouncut.cli.console import StageBars
from nouncut.cli.summary import (
    Announcement,
    describe_estimate,
    describe_files,
    show_run,
    summary,
)
from nouncut.runs.estimate import Estimate

ESTIMATE = Estimate(
    source_kind="images",
    n_files=600,
    n_words=39_524,
    n_copies=0,
    n_images=600,
    images_to_encode=600,
    texts_to_encode=39_524,
    encoding_seconds=20.0,
    clustering_seconds=5.0,
    n_bytes=420_000_000,
    announced="2026-11-17T08:00:00.000+00:00",
    amounts={},
    multiplications_per_second=1e11,
)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "600 image files to encode. 39,524 nouns to encode. About 25 s"),
        (
            {"images_to_encode": 100, "texts_to_encode": 0},
            "600 image files: 100 to encode, 500 known from before. 39,524 nouns: all known from "
            "before. About 25 s",
        ),
        (
            {"images_to_encode": 100, "n_copies": 10, "n_words": 0},
            "600 image files: 100 to encode, 490 known from before, 10 copies. About 25 s",
        ),
        ({"images_to_encode": 0, "n_words": 0}, "600 image files: all known from before. About"),
        (
            {"n_images": 40, "n_words": 0},
            "600 image files to encode. About 40 images can be opened. About 25 s",
        ),
        ({"source_kind": "features", "n_words": 0}, "600 rows of features. About 25 s"),
    ],
)
def test_what_is_announced(changes, sentence):
    told = describe_estimate(replace(ESTIMATE, **changes))
    assert told.startswith(sentence)
    assert told.endswith(" and 420 MB of memory.")


def test_too_little_memory_is_said_beforehand():
    told = describe_estimate(replace(ESTIMATE, n_bytes=10**15))
    assert re.search(r"1000000\.0 GB of memory, but only [\d.]+ [MG]B are free\.$", told)


def test_what_takes_no_time_or_ends_in_an_error_is_not_announced(capsys):
    for changes in ({"encoding_seconds": 0.5, "clustering_seconds": 1.0}, {"n_images": 1}):
        announcement = Announcement(StageBars())
        announcement(replace(ESTIMATE, **changes))
        assert announcement.is_new
        assert not announcement.was_printed
    assert capsys.readouterr().err == ""
    announcement = Announcement(StageBars(quiet=True))
    announcement(ESTIMATE)
    assert capsys.readouterr().err == ""


def test_files_add_up():
    reasons = [
        "the image is broken (truncated)",
        "the image is broken (no header)",
        "the file is empty",
        "not an image (.doc)",
        "the same file as /photos/1.jpg",
        "line 4 of list.txt: does not exist",
        "struck by lightning",
    ]
    assert describe_files(381, reasons) == (
        "388 files found: 381 images, 7 skipped (2 broken, 1 empty, 1 not images, 1 found twice, "
        "1 missing, 1 for another reason)."
    )
    assert describe_files(1, ["hidden"]) == "2 files found: 1 image, 1 skipped (1 hidden)."


def test_guesses_are_marked_and_explained(small_run, capsys):
    show_run(small_run, Announcement(StageBars(quiet=True)))
    out = capsys.readouterr().out
    assert "1 name marked ? is a guess: the model does not know what the group shows." in out
    assert " 0.97 " in out
    assert [row["guess"] for row in summary(small_run)["clusters"]] == [False, True, False]
