from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nouncut import encode_images, encode_nouns
from nouncut.errors import InputError
from nouncut.images.find import scan_images
from nouncut.method.whitening import half_whitening
from nouncut.models.encoder import Encoder
from nouncut.runs import encode as encoding_module
from nouncut.runs.encode import ImageEncoding
from nouncut.runs.image_set import hash_images
from nouncut.store.store import FeatureStore

# A child process that encodes a folder with a stand-in for a model and logs every image that
# went through it: slow enough to be killed in the midst of its work.
CHILD = """
import os, sys, time
import numpy as np
from nouncut.models.encoder import Encoder
from nouncut.runs import encode as encoding
from nouncut.runs.encode import encode_images
from nouncut.store.store import FeatureStore

class Averages(Encoder):
    name, fingerprint, image_dim, text_dim = "averages", "averages-1", 12, 12
    def prepare(self, image):
        return np.asarray(image.resize((2, 2)), dtype=np.float32).transpose(2, 0, 1)
    def encode_prepared(self, batch):
        time.sleep(0.01)
        return batch.reshape(len(batch), -1)
    def encode_texts(self, texts):
        raise NotImplementedError

def encode(folder, root, log, stop_after=0):
    store = FeatureStore(root)
    append = store.append
    n_batches = 0
    def logged(space, keys, rows, **options):
        nonlocal n_batches
        added = append(space, keys, rows, **options)
        with open(log, "a") as file:
            file.write("".join(f"{key}\\n" for key in keys))
        n_batches += 1
        while n_batches == stop_after:
            time.sleep(1)
        return added
    store.append = logged
    encoding._LEAST = encoding._MOST = 8
    return encode_images(folder, Averages(), store).n_encoded
"""
# Forks such a process for every line it reads, so that each begins at once. The line tells the
# batch after which it waits for its end, if it is not 0.
FORKS = """
for line in iter(sys.stdin.readline, ""):
    pid = os.fork()
    if pid == 0:
        os.write(1, f"encoded {encode(*sys.argv[1:], int(line))}\\n".encode())
        os._exit(0)
    os.write(1, f"{pid}\\n".encode())
    os.waitpid(pid, 0)
    os.write(1, b"gone\\n")
"""


class Averages(Encoder):
    """A stand-in for a model: the colours of four quarters. Real ones have their own tests."""

    name, fingerprint, image_dim, text_dim = "averages", "averages-1", 12, 12

    def prepare(self, image):
        return np.asarray(image.resize((2, 2)), dtype=np.float32).transpose(2, 0, 1)

    def encode_prepared(self, batch):
        return batch.reshape(len(batch), -1)

    def encode_texts(self, texts):
        codes = [[len(text), *text.encode()[:11].ljust(11)] for text in texts]
        return np.array(codes, dtype=np.float32)


def make_images(folder: Path, count: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for number in range(count):
        pixels = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:05}.png")


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    make_images(folder, 20)
    return folder


@pytest.fixture
def store(tmp_path) -> FeatureStore:
    return FeatureStore(tmp_path / "cache")


def test_only_new_and_changed_images_are_encoded(folder, store):
    assert encode_images(folder, Averages(), store).n_encoded == 20
    assert encode_images(folder, Averages(), store).n_encoded == 0
    Image.new("RGB", (5, 5), "red").save(folder / "new.png")
    Image.new("RGB", (5, 5), "blue").save(folder / "00003.png")
    again = encode_images(folder, Averages(), store)
    assert again.n_encoded == 2
    assert len(again.paths) == 21
    np.testing.assert_array_equal(again.visual()[-1].reshape(3, -1)[0], 255)


def test_moved_and_repeated_images_are_known(folder, store, tmp_path):
    first = encode_images(folder, Averages(), store)
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved / "a")
    shutil.copytree(folder, moved / "b")
    again = encode_images(moved, Averages(), store)
    assert again.n_encoded == 0
    np.testing.assert_array_equal(again.visual(), np.tile(first.visual(), (2, 1)))


def test_broken_files_and_their_copies_are_listed(folder, store):
    for name in ("bad.jpg", "copy of bad.jpg"):
        (folder / name).write_bytes(b"\xff\xd8\xff\xe0 no more")
    (folder / "notes.doc").write_text("hello")
    images = encode_images(folder, Averages(), store)
    assert len(images.paths) == 20
    assert {file.path.name for file in images.skipped} == {
        "bad.jpg",
        "copy of bad.jpg",
        "notes.doc",
    }
    assert all(file.reason for file in images.skipped)


def test_nothing_but_broken_files_is_an_error(tmp_path, store):
    (tmp_path / "only.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(InputError, match=r"only\.png"):
        encode_images(tmp_path / "only.png", Averages(), store)


def test_progress_counts_to_the_end(folder, store):
    calls = []
    encode_images(folder, Averages(), store, progress=lambda *call: calls.append(call))
    assert calls[-1] == ("encoding images", 20, 20)
    assert ("reading files", 20, 20) in calls


class Groups(Averages):
    """Records which images it encodes together."""

    def __init__(self):
        self.batches = []

    def encode_prepared(self, batch):
        self.batches.append(batch.reshape(len(batch), -1))
        return super().encode_prepared(batch)

    def groups(self):
        """Return the groups of eight in which images are encoded."""
        return [batch[i : i + 8] for batch in self.batches for i in range(0, len(batch), 8)]


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("seconds", [None, 0, 60])
def test_groups_depend_neither_on_threads_nor_on_a_trial(tmp_path, n_jobs, seconds):
    folder = tmp_path / "photos"
    folder.mkdir()
    make_images(folder, 100)
    for number in (3, 50, 51):
        (folder / f"{number:05}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes([number]))
    scan = scan_images(folder)
    found = []
    for name, jobs, trial in (("plain", 1, None), ("other", n_jobs, seconds)):
        store, encoder = FeatureStore(tmp_path / name), Groups()
        images = hash_images(scan, store)
        encoding = ImageEncoding(images, encoder, store, n_jobs=jobs)
        if trial is not None:
            shown = encoding.try_some(trial)
            assert 0.8 < shown.share_opened <= 1
            assert encoding.n_left == (0 if trial else 100 - 8)
        assert encoding.finish().n_encoded == 97
        found.append(encoder.groups())
    assert [len(group) for group in found[0]] == [8] * 12 + [1]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_trial_tells_the_pace_without_the_first_batch(tmp_path, monkeypatch):
    now = 0.0

    class Slow(Averages):
        fingerprint, is_loaded = "averages-slow", False

        def encode_prepared(self, batch):
            nonlocal now
            now += 0.002 * len(batch) + (0 if self.is_loaded else 0.5)
            self.is_loaded = True
            return super().encode_prepared(batch)

    timed = partial(encoding_module.seconds_per_item, clock=lambda: now)
    monkeypatch.setattr(encoding_module, "seconds_per_item", timed)

    folder = tmp_path / "photos"
    folder.mkdir()
    make_images(folder, 60)
    store = FeatureStore(tmp_path / "store")
    images = hash_images(scan_images(folder), store)
    shown = ImageEncoding(images, Slow(), store).try_some(0.01)
    assert shown.seconds_per_file == pytest.approx(0.002)
    assert shown.n_bytes == 3 * 2 * 2 * 4


def test_new_images_are_viewed_like_those_before(folder, store, tmp_path):
    class Whitened(Averages):
        fingerprint, whitens_visual = "averages-2", True

    images = encode_images(folder, Whitened(), store)
    np.testing.assert_allclose(images.visual().mean(axis=0), 0, atol=1e-4)
    view = half_whitening(images.semantic())
    np.testing.assert_allclose(images.visual(), view(images.semantic()), atol=1e-5)
    one = encode_images(images.paths[1], Whitened(), store)
    np.testing.assert_allclose(one.visual(images.visual_view())[0], images.visual()[1], atol=1e-4)


def test_nouns_are_encoded_once(store):
    class Counting(Averages):
        fingerprint, encoded = "averages-3", 0

        def encode_texts(self, texts):
            type(self).encoded += len(texts)
            return super().encode_texts(texts)

    encoder = Counting()
    features = encode_nouns(["cat", "dog"], ["{}", "a {}."], encoder, store)
    assert Counting.encoded == 4
    again = encode_nouns(["dog", "cow"], ["{}"], encoder, store)
    assert Counting.encoded == 5
    np.testing.assert_array_equal(again[0][0], features[0][1])
    with pytest.raises(ValueError, match="template"):
        encode_nouns(["cat"], ["no place"], encoder, store)


def test_a_long_list_is_read_from_its_copy(store, monkeypatch):
    encoder, nouns = Averages(), [f"noun {number}" for number in range(5000)]
    (first,) = encode_nouns(nouns, ["{}"], encoder, store)
    # Rows of the database cannot be read now.
    monkeypatch.setattr(type(store), "read", None)
    (again,) = encode_nouns(nouns, ["{}"], encoder, store)
    np.testing.assert_array_equal(again, first)
    monkeypatch.undo()
    store.prune(max_bytes=10**9)
    (rows,) = encode_nouns(nouns, ["{}"], encoder, store)
    np.testing.assert_array_equal(rows, first)


def test_twenty_kills_lose_nothing_and_repeat_nothing(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    make_images(folder, 500)
    root, log = tmp_path / "cache", tmp_path / "log"
    log.touch()
    generator = random.Random(0)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD + FORKS, folder, root, log],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as forks:

        def next_line() -> str:
            return forks.stdout.readline().strip()

        for _ in range(20):
            before = log.stat().st_size
            # Of 63 batches; a process that is killed late must not end all work.
            forks.stdin.write("3\n")
            pid = int(next_line())
            # Wait until it stores images again, then kill it at a random moment.
            patience = time.monotonic() + 60
            while log.stat().st_size == before and time.monotonic() < patience:
                time.sleep(0.002)
            time.sleep(generator.uniform(0, 0.03))
            os.kill(pid, signal.SIGKILL)
            assert next_line() == "gone"
        forks.stdin.write("0\n")
        next_line()
        assert next_line().startswith("encoded")

    store = FeatureStore(root)
    assert store.check() == []
    resumed = encode_images(folder, Averages(), store)
    assert resumed.n_encoded == 0
    undisturbed = encode_images(folder, Averages(), FeatureStore(tmp_path / "other"))
    np.testing.assert_array_equal(resumed.visual(), undisturbed.visual())
    stored = log.read_text().split()
    assert len(stored) == len(set(stored))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
def test_memory_does_not_grow_with_the_number_of_images(tmp_path):
    code = (
        CHILD
        + "\nencode(*sys.argv[1:])"
        + "\nprint([l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1])"
    )
    peaks = []
    for count in (100, 600):
        folder = tmp_path / f"photos-{count}"
        folder.mkdir()
        # Large enough that keeping the pixels of 600 would show: 0.9 MB each.
        block = np.random.default_rng(0).integers(0, 256, (55, 74, 3), dtype=np.uint8)
        for number in range(count):
            block[0, 0] = number % 256, number // 256, 0
            Image.fromarray(block).resize((640, 480), Image.Resampling.NEAREST).save(
                folder / f"{number}.bmp"
            )
        arguments = [str(folder), str(tmp_path / f"cache-{count}"), str(tmp_path / "log")]
        finished = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
        )
        peaks.append(int(finished.stdout))
    assert peaks[1] - peaks[0] < 100_000
