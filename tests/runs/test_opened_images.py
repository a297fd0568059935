from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from nouncut import encode_images
from nouncut.errors import InputError
from nouncut.images.find import scan_images
from nouncut.models.encoder import Encoder
from nouncut.runs.image_set import hash_images
from nouncut.store.store import FeatureStore


class Widths(Encoder):
    """Its feature is the width of the image that it is given."""

    name, fingerprint, image_dim, text_dim = "widths", "widths-1", 1, 1

    def __init__(self, input_side):
        self.input_side = input_side

    def prepare(self, image):
        return np.array([image.width], dtype=np.float32)

    def encode_prepared(self, batch):
        return batch

    def encode_texts(self, texts):
        raise NotImplementedError


@pytest.fixture
def store(tmp_path):
    return FeatureStore(tmp_path / "cache")


def test_files_that_are_no_images_are_skipped_before_they_are_encoded(tmp_path, store):
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.new("RGB", (8, 8)).save(photos / "good.png")
    for number in range(300):
        (photos / f"{number}.jpg").write_bytes(bytes([number % 256]))
    (photos / "empty.jpg").touch()
    images = hash_images(scan_images(photos), store)
    assert [path.name for path in images.paths] == ["good.png"]
    reasons = {file.path.name: file.reason for file in images.skipped}
    assert reasons.pop("empty.jpg") == "the file is empty"
    assert set(reasons.values()) == {"not an image in a known format"}
    assert len(reasons) == 300


def test_nothing_but_broken_files(tmp_path, store):
    for number in range(2):
        (tmp_path / f"{number}.jpg").write_bytes(b"x")
    with pytest.raises(InputError, match=r"None of 2 .*0\.jpg: not an image in a known format\."):
        hash_images(scan_images(tmp_path), store)
    for number in range(2):
        (tmp_path / f"{number}.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(InputError, match=r"None of 2 .*0\.jpg: the image is broken"):
        encode_images(tmp_path, Widths(None), store)


@pytest.mark.parametrize(("input_side", "width"), [(None, 1600), (100, 200), (150, 400)])
def test_large_jpeg_files_are_decoded_at_twice_the_input_or_more(
    tmp_path, store, input_side, width
):
    Image.new("RGB", (1600, 1600)).save(tmp_path / "x.jpg")
    assert encode_images(tmp_path, Widths(input_side), store).visual().tolist() == [[width]]
