from __future__ import annotations

import pytest

from nouncut import cluster_images
from nouncut.models.choose import load_encoder
from nouncut.runs.encode import ImageSet
from nouncut.runs.estimate import estimate_run
from nouncut.runs.job import Job
from nouncut.runs.settings import Settings
from nouncut.store.store import FeatureStore


@pytest.fixture(scope="module")
def estimate(tiny_clip, tmp_path_factory):
    """Return a function that estimates a run of images that only exist by name."""
    encoder = load_encoder(tiny_clip, device="cpu").encoder

    def make(n_images: int, words: list[str]):
        names = tuple(f"{number}.jpg" for number in range(n_images))
        store = FeatureStore(tmp_path_factory.mktemp("store"))
        job = Job(Settings(vocabulary=tuple(words)), store)
        return estimate_run(ImageSet(names, names, ()), encoder, job)

    return make


def test_more_takes_longer_and_more_memory(estimate):
    few, many = estimate(100, [f"word {n}" for n in range(200)]), estimate(10_000, ["word"])
    assert 0 < few.encoding_seconds < many.encoding_seconds < 10_000
    assert 0 < few.clustering_seconds < many.clustering_seconds
    assert 500 * 2**20 < few.n_bytes < many.n_bytes < 2 * 2**30
    assert (few.n_images, few.images_to_encode, few.texts_to_encode) == (100, 100, 200)


def test_what_is_quickly_encoded_is_not_tried(estimate):
    assert estimate(5, ["word"]).encoding_seconds == 0


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
