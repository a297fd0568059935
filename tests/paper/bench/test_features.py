from __future__ import annotations

import pytest

from nouncut.errors import InputError
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.bench.features import encode_source, source_keys
from nouncut.paper.datasets.catalog import load_dataset
from nouncut.paper.datasets.dataset import FileImages


def test_images_are_encoded_once_and_broken_ones_left_out(tmp_path, setup, make):
    make.folders(tmp_path / "photos", "a", "b")
    (tmp_path / "photos/a/broken.png").write_bytes(b"")
    dataset = load_dataset(str(tmp_path / "photos"))
    encoded = EncodedDataset(dataset, setup)
    assert setup.encoder.n_images == 4
    assert encoded.n_skipped == 1
    assert encoded.labels.tolist() == [0, 0, 1, 1]
    EncodedDataset(dataset, setup)
    assert setup.encoder.n_images == 4


def test_nothing_to_encode_is_an_error(tmp_path, setup):
    path = tmp_path / "broken.png"
    path.write_bytes(b"")
    source = FileImages((path,))
    with pytest.raises(InputError, match="the file is empty"):
        encode_source(source, source_keys(source, tmp_path), setup)


def test_keys_are_read_again_only_when_files_change(tmp_path, make):
    make.folders(tmp_path / "photos", "a", n=3)
    source = FileImages(tuple(sorted((tmp_path / "photos").rglob("*.png"))))
    calls = []
    first = source_keys(source, tmp_path / "keys", lambda *call: calls.append(call))
    again = source_keys(source, tmp_path / "keys", lambda *call: calls.append(call))
    assert first == again == [source.key(i) for i in range(3)]
    assert len(calls) == 1
    make.picture(source.paths[0], size=(50, 20))
    assert source_keys(source, tmp_path / "keys") != first
