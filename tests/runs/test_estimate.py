"""Estimates: what is new, what is broken, and what grows with the images."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from nouncut import cluster_images
from nouncut.compute import memory
from nouncut.compute.memory import peak_memory
from nouncut.errors import LowMemoryError
from nouncut.paper.synthetic import make_clip_like
from nouncut.store.store import FeatureStore


@pytest.fixture
def announced(tiny_clip, words, tmp_path):
    """Return a function that makes a run and returns what was announced about it."""
    store = FeatureStore(tmp_path / "store")

    def make(paths, **options):
        seen = []
        defaults = {"model": tiny_clip, "vocabulary": words, "store": store}
        run = cluster_images(
            paths,
            2,
            output=tmp_path / "run",
            replace=True,
            on_estimate=seen.append,
            **(defaults | options),
        )
        assert run.manifest["estimate"] == seen[0].to_json()
        return seen[0]

    return make


def test_the_estimate_counts_what_is_new(announced, draw, words):
    first = announced(draw(range(6)))
    assert (first.n_files, first.n_images, first.images_to_encode) == (6, 6, 6)
    assert (first.n_words, first.texts_to_encode) == (len(words), len(words))
    second = announced(draw(range(9)))
    assert (second.n_files, second.images_to_encode, second.texts_to_encode) == (9, 3, 0)
    third = announced(draw(range(0)), random_state=1)
    assert (third.images_to_encode, third.encoding_seconds) == (0, 0)
    assert 0 < third.clustering_seconds < 600
    assert third.seconds == third.clustering_seconds


def test_copies_are_not_counted_as_known(announced, draw):
    estimate = announced(draw(range(8), copies=True), compare="looks")
    assert (estimate.n_files, estimate.images_to_encode, estimate.n_copies) == (8, 1, 7)


def test_broken_files_cost_what_they_cost(announced, draw):
    folder = draw(range(10))
    for number in range(400):
        (folder / f"broken {number}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + str(number).encode())
    estimate = announced(folder)
    assert (estimate.n_files, estimate.images_to_encode) == (410, 410)
    assert estimate.n_images < 50
    # Nobody has to wait for files that cannot be opened.
    assert estimate.encoding_seconds < 5


def test_more_rows_take_longer_and_more_memory(announced, tmp_path):
    estimates = []
    for n_images in (300, 3000):
        path = tmp_path / f"{n_images}.npy"
        np.save(path, make_clip_like(n_images, 2, random_state=0).features)
        estimates.append(announced(path, model="auto", vocabulary=None))
    few, many = estimates
    assert (few.source_kind, few.n_files, few.n_words) == ("features", 300, 0)
    for kind, amount in few.amounts.items():
        assert many.amounts[kind] >= amount, kind
    # A process that has needed more before is not expected to need less.
    assert few.n_bytes < many.n_bytes or many.n_bytes >= peak_memory()
    # These runs are too small to need more than the libraries that every run loads.
    assert peak_memory() / 2 < many.n_bytes < peak_memory() + 2**30
    age = datetime.now(UTC) - datetime.fromisoformat(many.announced)
    assert timedelta(0) <= age < timedelta(minutes=5)


def test_a_run_that_a_container_would_kill_ends_before_its_long_part(
    announced, tmp_path, monkeypatch
):
    path = tmp_path / "features.npy"
    np.save(path, make_clip_like(3000, 2, random_state=0).features)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("3000000000")
    (tmp_path / "memory.current").write_text("2999000000")
    with pytest.raises(
        LowMemoryError, match=r"control group\) leaves only 0\.0 GB\. Raise the con"
    ):
        announced(path, model="auto", vocabulary=None)
    (tmp_path / "memory.current").write_text("1000000")
    announced(path, model="auto", vocabulary=None)
