"""Stages are timed, reported and logged; warnings are recorded."""

from __future__ import annotations

import logging
import warnings

import pytest

from nouncut.runs.job import Job, recorded_warnings
from nouncut.runs.settings import Settings


def test_a_stage_is_timed_reported_and_logged(caplog):
    ticks, calls = iter([1.0, 3.5, 10.0, 11.0]), []
    job = Job(
        Settings(), store=None, progress=lambda *call: calls.append(call), clock=lambda: next(ticks)
    )
    with caplog.at_level(logging.INFO, logger="nouncut"):
        for _ in range(2):
            with job.stage("clustering"):
                pass
    assert job.seconds == {"clustering": 3.5}
    assert calls == [("clustering", 0, 1), ("clustering", 1, 1)] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "clustering took 2.5 s",
        "clustering took 1.0 s",
    ]


def test_warnings_for_users_are_recorded_once_and_others_are_issued():
    def work() -> list[str]:
        with recorded_warnings() as messages:
            for _ in range(2):
                warnings.warn("images have no neighbour", UserWarning, stacklevel=1)
            warnings.warn("old", DeprecationWarning, stacklevel=1)
            return messages()

    with pytest.warns(DeprecationWarning, match="old") as issued:
        assert work() == ["images have no neighbour"]
    assert len(issued) == 1
