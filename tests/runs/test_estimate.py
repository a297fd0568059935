from __future__ import annotations

import pytest

from nouncut import cluster_images
from nouncut.models.choose import load_encoder
from nouncut.runs.estimate import estimate_run
from nouncut.store.store import FeatureStore


@pytest.fixture(scope="module")
def encoder(tiny_clip):
    return load_encoder(tiny_clip, device="cpu").encoder


def test_nothing_to_encode_takes_no_time(encoder):
    assert estimate_run(encoder, 1000, 0, [], 7).encoding_seconds == 0


def test_more_takes_longer_and_more_memory(encoder):
    texts = [f"word {number}" for number in range(200)]
    few = estimate_run(encoder, 1_000, 100, texts, 7)
    many = estimate_run(encoder, 100_000, 100_000, texts, 7)
    assert 0 < few.encoding_seconds < many.encoding_seconds < 100_000
    assert 0 < few.clustering_seconds < many.clustering_seconds
    assert 500 * 2**20 < few.n_bytes < 2 * 2**30
    assert few.n_bytes < many.n_bytes
    assert (few.n_images, few.images_to_encode, few.texts_to_encode) == (1_000, 100, 200)


def test_the_estimate_counts_what_is_new(draw, tiny_clip, words, tmp_path):
    seen = []
    for numbers in (range(6), range(9)):
        cluster_images(
            draw(numbers),
            2,
            model=tiny_clip,
            vocabulary=words,
            store=FeatureStore(tmp_path / "store"),
            output=tmp_path / "run",
            on_estimate=seen.append,
        )
    assert [estimate.n_images for estimate in seen] == [6, 9]
    assert [estimate.images_to_encode for estimate in seen] == [6, 3]
    assert [estimate.texts_to_encode for estimate in seen] == [len(words), 0]
