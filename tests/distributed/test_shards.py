from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.distributed import shards
from nouncut.distributed.shard_readers import DamageError, image_columns
from nouncut.distributed.shards import LISTING, list_shards, shard_name
from nouncut.distributed.sources import walk_files
from nouncut.distributed.storage import Storage
from nouncut.errors import InputError
from nouncut.images.find import scan_images

GIGABYTE = 10**9
names = st.text("ab.-_é", min_size=1, max_size=3).filter(lambda name: name.strip("."))


def list_all(storage, sources, options=None):
    listing = list_shards(storage, [str(one) for one in sources], GIGABYTE, options)
    return listing, [storage.read_json(shard_name(n)) for n in range(listing.n_shards)]


def listed_files(found):
    return [path for shard in found for path, _, _ in shard.get("files", [])]


def touch(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")


@settings(max_examples=40, deadline=None)
@given(st.sets(st.tuples(names, names, names), min_size=1, max_size=12), st.data())
def test_files_come_in_the_order_of_their_paths_and_can_be_continued(parts, data):
    with tempfile.TemporaryDirectory() as folder:
        for first, second, last in parts:
            touch(Path(folder), f"x{first}/y{second}/z{last}.jpg", f"x{first}-{last}.jpg")
        found = [file.path for file in walk_files(folder, {})]
        assert found == sorted(found, key=os.fsencode)
        assert found == [str(path) for path in scan_images(folder).files]
        after = data.draw(st.sampled_from(found))
        rest = [file.path for file in walk_files(folder, {}, after)]
        assert rest == found[found.index(after) + 1 :]


def test_what_is_skipped_is_skipped_on_one_machine_too(tmp_path):
    touch(tmp_path, "a.jpg", ".hidden.jpg", ".git/b.jpg", "Thumbs.db", "n.doc", "__MACOSX/._c.jpg")
    touch(tmp_path, "run/report-thumbnails/160/x.webp", "odd::name.jpg", "p.psd")
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({"nouncut": "1"}))
    os.symlink(tmp_path, tmp_path / "circle")
    scan = scan_images(tmp_path)
    found = [file for file in walk_files(str(tmp_path), {}) if file.kind]
    skipped = {file.path: file.reason for file in walk_files(str(tmp_path), {}) if not file.kind}
    assert [file.path for file in found] == [str(path) for path in scan.files]
    expected = {str(one.path): one.reason for one in scan.skipped}
    assert skipped == {path: why for path, why in expected.items() if "circle" not in path}


def test_urls_and_several_sources(tmp_path):
    system = fsspec.filesystem("memory")
    for name in ("b/2.jpg", "b/1.jpg", "c.png", "readme.md"):
        system.pipe_file(f"/some-photos/{name}", b"x")
    touch(tmp_path, "one.jpg")
    listing, found = list_all(Storage("memory://urls/work"), ["memory://some-photos", tmp_path])
    assert listing.n_files == 4
    assert listing.n_bytes == 4
    assert listing.n_skipped == 1
    urls = [f"memory:///some-photos/{name}" for name in ("b/1.jpg", "b/2.jpg", "c.png")]
    assert listed_files(found) == [*urls, str(tmp_path / "one.jpg")]


def test_lists_name_sources(tmp_path):
    touch(tmp_path, "a/1.jpg", "b/2.jpg", "b/3.jpg")
    (tmp_path / "list.txt").write_text(f"# mine\nb\n\n{tmp_path}/a/1.jpg\n")
    _, found = list_all(Storage("memory://lists/work"), [tmp_path / "list.txt"])
    expected = [str(tmp_path / name) for name in ("b/2.jpg", "b/3.jpg", "a/1.jpg")]
    assert listed_files(found) == expected


def test_an_interrupted_listing_continues_after_its_last_shard(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_FIRST_IMAGES", 2)
    touch(tmp_path / "in", *(f"{folder}/{n}.jpg" for folder in "abc" for n in range(5)))
    touch(tmp_path / "in", "b/t.tar")
    (tmp_path / "in" / "b" / "t.tar").write_bytes(bytes(500_000))
    storage = Storage(str(tmp_path / "whole"))
    listing, whole = list_all(storage, [tmp_path / "in"])
    assert [shard["n_parts"] for shard in whole if shard["kind"] == "tar"] == [3, 3, 3]
    for n_kept in range(len(whole)):
        storage = Storage(str(tmp_path / f"cut-{n_kept}"))
        storage.write_json("listing-of.json", [str(tmp_path / "in")])
        for number in range(n_kept):
            storage.write_json(shard_name(number), whole[number])
        again, found = list_all(storage, [tmp_path / "in"])
        assert (again, found) == (listing, whole)


def test_a_listing_of_another_source_is_not_continued(tmp_path):
    touch(tmp_path / "old", "a.jpg")
    touch(tmp_path / "new", "b.jpg")
    storage = Storage(str(tmp_path / "work"))
    list_all(storage, [tmp_path / "old"])
    storage.remove(LISTING)
    assert listed_files(list_all(storage, [tmp_path / "new"])[1]) == [str(tmp_path / "new/b.jpg")]


def test_a_complete_listing_is_not_made_again(tmp_path):
    touch(tmp_path / "in", "a.jpg")
    storage = Storage(str(tmp_path / "work"))
    first, _ = list_all(storage, [tmp_path / "in"])
    touch(tmp_path / "in", "b.jpg")
    assert list_all(storage, [tmp_path / "in"])[0] == first
    assert storage.size(LISTING)


def test_shards_grow_with_the_source(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_FIRST_IMAGES", 2)
    monkeypatch.setattr(shards, "_SHARDS_OF_A_SIZE", 3)
    touch(tmp_path / "in", *(f"{n:03d}.jpg" for n in range(60)))
    _, found = list_all(Storage(str(tmp_path / "work")), [tmp_path / "in"])
    assert [len(shard["files"]) for shard in found] == [2, 2, 2, 4, 4, 4, 8, 8, 8, 16, 2]


def test_tables_beside_images_are_skipped(tmp_path):
    touch(tmp_path, "a.jpg")
    np.save(tmp_path / "labels.npy", np.zeros((2, 3)))
    pq.write_table(pa.table({"label": [1]}), tmp_path / "metadata.parquet")
    listing, found = list_all(Storage("memory://beside/work"), [tmp_path])
    assert listing.kind == "images"
    assert len(listed_files(found)) == 1
    reasons = [reason for shard in found for _, reason in shard["skipped"]]
    assert reasons[0] == "features, not images"
    assert "label (int64)" in reasons[1]


def test_nothing_to_cluster_is_explained(tmp_path):
    touch(tmp_path / "in", "a.doc", "b.doc")
    pq.write_table(pa.table({"label": [1]}), tmp_path / "in" / "c.parquet")
    with pytest.raises(InputError, match=r"No images found.*2 x not an image.*label \(int64\)"):
        list_all(Storage(str(tmp_path / "work")), [tmp_path / "in"])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            {"image": pa.struct({"bytes": pa.binary(), "path": pa.string()})},
            ("image.bytes", "image.path"),
        ),
        ({"id": pa.string(), "jpg": pa.binary(), "mask": pa.binary()}, ("jpg", "id")),
        ({"image.bytes": pa.large_binary(), "x": pa.binary()}, ("image.bytes", None)),
        ({"whatever": pa.binary(), "n": pa.int64()}, ("whatever", None)),
    ],
)
def test_the_column_of_images_is_found(columns, expected):
    assert image_columns(pa.schema(columns)) == expected


def test_columns_that_do_not_fit_are_named():
    with pytest.raises(DamageError, match=r"left \(binary\), right \(binary\).*name it 'image'"):
        image_columns(pa.schema({"left": pa.binary(), "right": pa.binary()}))
