from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from photographs import tar_bytes, write_parquet, write_tars

from nouncut.distributed import shards
from nouncut.distributed.encode import encode_shards
from nouncut.distributed.model import Model, agree_on_model
from nouncut.distributed.shards import list_shards, shard_name
from nouncut.distributed.stages import Engine
from nouncut.distributed.storage import Storage
from nouncut.errors import ClusterError, InputError

N_IMAGES = 13


def test_a_folder_gives_the_features_and_hashes_of_one_machine(
    encode, photos, reference, same_as_one_machine, tmp_path, small_shards
):
    small_shards(7)
    found = encode(photos, tmp_path / "work")
    same_as_one_machine(found)
    assert [row["path"] for row in found.images] == [str(path) for path in reference[0].paths]
    expected = {str(one.path): one.reason for one in reference[0].skipped}
    assert found.skipped == expected
    assert len(expected) == 2
    assert len(found.results) == 3
    hashes = found.hashes
    twins = [n for n, one in enumerate(hashes) if hashes.count(one) == 2]
    # In different batches and shards.
    assert len(twins) == 2
    assert np.array_equal(*found.features[twins])


def test_tars_give_the_same(encode, image_files, same_as_one_machine, tmp_path):
    write_tars(image_files, tmp_path / "tars")
    found = encode(tmp_path / "tars", tmp_path / "work")
    same_as_one_machine(found)
    assert found.images[0]["path"] == f"{tmp_path}/tars/photos-0000.tar#000.jpg"
    assert list(found.skipped) == [f"{tmp_path}/tars/photos-0002.tar#half.jpg"]
    assert len(found.results) == 3


def test_a_large_tar_is_divided(
    encode, image_files, same_as_one_machine, tmp_path, small_shards, monkeypatch
):
    small_shards(1)
    monkeypatch.setattr(shards, "_BYTES_PER_IMAGE", 30_000)
    write_tars(image_files, tmp_path / "tars", 1)
    found = encode(f"{tmp_path}/tars/*.tar", tmp_path / "work")
    same_as_one_machine(found)
    assert len(found.results) > 4
    assert encode.engine.counts["index"].n_tasks == 1


def test_a_compressed_tar_gives_the_same(encode, image_files, same_as_one_machine, tmp_path):
    members = {path.name: path.read_bytes() for path in image_files}
    (tmp_path / "all.tar.gz").write_bytes(tar_bytes(members, "w:gz"))
    same_as_one_machine(encode(tmp_path / "all.tar.gz", tmp_path / "work"))


@pytest.mark.parametrize("n_images", [1, 128])
def test_parquet_gives_the_same(
    encode, image_files, same_as_one_machine, tmp_path, small_shards, monkeypatch, n_images
):
    small_shards(n_images)
    monkeypatch.setattr(shards, "_BYTES_PER_IMAGE", 60_000)
    write_parquet(image_files, tmp_path / "photos.parquet")
    found = encode(tmp_path / "photos.parquet", tmp_path / "work")
    same_as_one_machine(found)
    assert (len(found.results) > 1) == (n_images == 1)
    assert found.images[1]["path"] == f"{tmp_path}/photos.parquet#1/001.jpg"


def test_a_truncated_tar_is_listed_and_what_is_before_is_used(encode, image_files, tmp_path):
    write_tars(image_files, tmp_path / "tars")
    bad = tmp_path / "tars" / "photos-0001.tar"
    whole = bad.read_bytes()
    bad.write_bytes(whole[: len(whole) // 2])
    found = encode(tmp_path / "tars", tmp_path / "work")
    assert "the tar" in found.skipped[str(bad)]
    assert "are used" in found.skipped[str(bad)]
    assert "1 of 3 shards could not be read to their ends. They are listed" in encode.warnings[0]
    assert str(bad) in encode.warnings[0]
    assert 0 < found.results[1]["n_rows"] < 5
    assert [r["n_rows"] for r in found.results[::2]] == [5, 4]


def test_garbage_in_a_tar_does_not_end_it_in_silence(encode, image_files, tmp_path):
    write_tars(image_files, tmp_path / "tars")
    bad = tmp_path / "tars" / "photos-0000.tar"
    content = bytearray(bad.read_bytes())
    at = content.index(b"003.jpg")
    content[at : at + 512] = b"\xff" * 512
    bad.write_bytes(content)
    found = encode(tmp_path / "tars", tmp_path / "work")
    assert "damaged" in found.skipped[str(bad)]
    assert found.results[0]["n_rows"] == 3


def test_a_corrupt_parquet_file_is_listed_and_the_others_are_used(encode, image_files, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    write_parquet(image_files[:5], folder / "1.parquet")
    write_parquet(image_files[5:10], folder / "2.parquet")
    (folder / "2.parquet").write_bytes((folder / "2.parquet").read_bytes()[:-200])
    write_parquet(image_files[10:], folder / "3.parquet")
    pq.write_table(pa.table({"label": [1], "text": ["x"]}), folder / "4.parquet")
    found = encode(folder, tmp_path / "work")
    assert "damaged" in found.skipped[str(folder / "2.parquet")]
    assert "label (int64), text (string)" in found.skipped[str(folder / "4.parquet")]
    assert [r["n_rows"] for r in found.results] == [5, 0, 4, 0]


def test_nothing_left_is_an_error_and_can_be_resumed(encode, image_files, tmp_path):
    write_tars(image_files, tmp_path / "tars", 1)
    tar = tmp_path / "tars" / "photos-0000.tar"
    away = tmp_path / "away.tar"
    os.rename(tar, away)
    tar.write_bytes(b"\x01" * 4096)
    with pytest.raises(InputError, match=r"None of .* can be used.*photos-0000.tar.*damaged"):
        encode(tmp_path / "tars", tmp_path / "work")
    os.replace(away, tar)
    assert len(encode(tmp_path / "tars", tmp_path / "work").features) == N_IMAGES + 1


def test_names_in_a_tar_are_only_names(encode, image_files, tmp_path):
    content = image_files[0].read_bytes()
    names = ["../../evil.jpg", "/etc/evil.jpg", "a/../../b.jpg", "\udcff\n.jpg", "none"]
    (tmp_path / "evil.tar").write_bytes(tar_bytes(dict.fromkeys(names, content)))
    found = encode(tmp_path / "evil.tar", tmp_path / "work")
    assert len(found.images) == 5
    assert found.images[0]["path"].endswith("evil.tar#../../evil.jpg")
    assert not list(tmp_path.parent.rglob("evil.jpg"))
    assert not Path("/etc/evil.jpg").exists()


def test_bombs_are_skipped(encode, image_files, tmp_path):
    size = b"IHDR" + struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
    data = b"\0\0\x08\0IDAT" + bytes(2048)
    bomb = b"\x89PNG\r\n\x1a\n\0\0\0\r" + size + struct.pack(">I", zlib.crc32(size))
    good = image_files[0].read_bytes()
    members = {"bomb.png": bomb + data, "empty.jpg": b"", "good.jpg": good}
    (tmp_path / "bombs.tar").write_bytes(tar_bytes(members))
    found = encode(tmp_path / "bombs.tar", tmp_path / "work")
    assert len(found.images) == 1
    assert "too large" in found.skipped[f"{tmp_path}/bombs.tar#bomb.png"]
    assert "empty" in found.skipped[f"{tmp_path}/bombs.tar#empty.jpg"]


def test_a_killed_worker_repeats_nothing_that_was_finished(
    encode, processes, kill_worker, photos, same_as_one_machine, tmp_path, small_shards
):
    small_shards(4)
    killed = []

    def kill_one(stage, n_done, total):
        if n_done == 2 and not killed:
            killed.append(kill_worker())

    finished = {}

    def watch(stage, n_done, total):
        kill_one(stage, n_done, total)
        for path in (tmp_path / "work" / "receipts").glob("*/*.json"):
            finished.setdefault(path, path.stat().st_mtime_ns)

    found = encode(photos, tmp_path / "work", progress=watch, workers=processes)
    assert killed == [True]
    same_as_one_machine(found)
    # Every receipt was written once.
    assert all(path.stat().st_mtime_ns == time for path, time in finished.items())
    again = encode(photos, tmp_path / "work")
    assert again.hashes == found.hashes
    assert all(path.stat().st_mtime_ns == time for path, time in finished.items())


def test_an_interrupted_encoding_goes_on(
    encode, photos, same_as_one_machine, tmp_path, small_shards
):
    small_shards(4)

    def interrupt(stage, n_done, total):
        if n_done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(photos, tmp_path / "work", progress=interrupt)
    n_finished = len(list((tmp_path / "work" / "receipts").glob("*/*.json")))
    same_as_one_machine(encode(photos, tmp_path / "work"))
    assert encode.engine.counts["encoding images"].n_finished >= n_finished >= 2


def test_the_cache_serves_other_runs_until_files_change(
    encode, image_files, same_as_one_machine, tmp_path
):
    write_tars(image_files, tmp_path / "tars")
    cache = str(tmp_path / "cache")
    first = encode(tmp_path / "tars", tmp_path / "one", cache=cache)
    again = encode(tmp_path / "tars", tmp_path / "two", cache=cache)
    assert [r["n_encoded"] for r in first.results] == [5, 5, 4]
    assert [r["n_encoded"] for r in again.results] == [0, 0, 0]
    assert np.array_equal(first.features, again.features)
    same_as_one_machine(again)
    tar = tmp_path / "tars" / "photos-0001.tar"
    os.utime(tar, ns=(0, 10**18))
    third = encode(tmp_path / "tars", tmp_path / "three", cache=cache)
    assert [r["n_encoded"] for r in third.results] == [0, 5, 0]


def test_ready_features_need_no_model(encode, tmp_path):
    rows = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    np.save(tmp_path / "features.npy", rows)
    storage = Storage(str(tmp_path / "work"))
    listing = list_shards(storage, [str(tmp_path / "features.npy")], 10**9)
    assert (listing.kind, listing.n_shards) == ("features", 1)
    assert "options" not in storage.read_json(shard_name(0))


def test_workers_agree_on_the_model(client, encoder, tmp_path, monkeypatch):
    storage = Storage(str(tmp_path))
    found = agree_on_model(Engine(client, storage), "mini")
    assert found == Model("mini", encoder.fingerprint, has_semantic=True)
    # A resumed run keeps to it.
    monkeypatch.setattr("nouncut.distributed.model._describe_model", None)
    assert agree_on_model(Engine(client, storage), "mini") == found


def test_workers_with_other_weights_are_refused(client, encode, photos, tmp_path):
    storage = Storage(str(tmp_path / "work"))
    listing = list_shards(storage, [str(photos)], 10**9)
    other = Model("mini", "other weights", has_semantic=True)
    with pytest.raises(ClusterError, match="different weights or runtimes for the model mini"):
        encode_shards(Engine(client, storage), listing, other, 10**9)
