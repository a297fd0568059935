"""Runs that are interrupted or killed, and two at once."""

from __future__ import annotations

import json
import shutil
import signal
import sys

import numpy as np
import pytest
from PIL import Image

from nouncut.errors import InputError
from nouncut.runs.run import open_run
from nouncut.store.store import FeatureStore

N_IMAGES = 160
BATCH = 64


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Return a folder of pictures that take a while to open."""
    folder = tmp_path_factory.mktemp("slow") / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(16):
        pixels = np.asarray(Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8)))
        large = Image.fromarray(pixels).resize((720, 540), Image.Resampling.NEAREST)
        large.save(folder / f"{number}-0.png", compress_level=1)
        content = (folder / f"{number}-0.png").read_bytes()
        for copy in range(1, N_IMAGES // 16):
            # What follows the end of a picture makes other content of it, and the same picture.
            (folder / f"{number}-{copy}.png").write_bytes(content + bytes([copy]))
    return folder


@pytest.fixture
def own_cache(nouncut_in, tmp_path):
    """Return the command with nothing encoded yet."""
    return nouncut_in(tmp_path, tmp_path / "cache")


@pytest.fixture(scope="module")
def command(photos, tiny_clip, words):
    shared = ("--model", tiny_clip, "--vocabulary", words, "-o", "run", "--json")
    return ("cluster", photos, "-k", 5, *shared)


@pytest.fixture(scope="module")
def expected(nouncut_in, cache, command, tmp_path_factory):
    """Return the labels of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    nouncut_in(folder, cache)(*command)
    return open_run(folder / "run").labels.tolist()


def n_encoded(nouncut):
    return sum(
        space.n_rows
        for space in FeatureStore(nouncut.cache / "features").spaces()
        if space.name.startswith("images")
    )


def test_ctrl_c_while_encoding_and_the_same_command_again(
    own_cache, command, expected, wait_for, tmp_path
):
    for _ in range(10):
        process = own_cache.start(*command, cold=True)
        wait_for(lambda: (tmp_path / "run" / "manifest.json").exists(), process)
        wait_for(lambda: n_encoded(own_cache), process)
        process.send(signal.SIGINT)
        ended = process.wait()
        if n_encoded(own_cache) < N_IMAGES:
            break
        # On a busy machine all is encoded before the interruption.
        shutil.rmtree(tmp_path / "run")
        shutil.rmtree(own_cache.cache)
    assert ended.code == 130
    assert ended.out == ""
    assert "Interrupted." in ended.err
    assert f"continue with: nouncut cluster {command[1]} -k 5 " in ended.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["status"] == "running"
    with pytest.raises(InputError, match="unfinished"):
        open_run(tmp_path / "run")
    kept = n_encoded(own_cache)
    assert 0 < kept < N_IMAGES
    assert own_cache(*command).json["n_encoded"] == N_IMAGES - kept
    assert open_run(tmp_path / "run").labels.tolist() == expected


def is_finished(run):
    try:
        open_run(run)
    except InputError:
        return False
    return True


MOMENTS = {
    "the run directory is made": lambda run, _: run.exists(),
    "encoding begins": lambda run, _: (run / "manifest.json").exists(),
    "a batch is stored": lambda _, nouncut: n_encoded(nouncut),
    "all is encoded": lambda _, nouncut: n_encoded(nouncut) == N_IMAGES,
    "arrays are written": lambda run, _: list(run.glob("arrays/*")),
    "tables are written": lambda run, _: list(run.glob("*.parquet*")),
}


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_killed_at_any_moment_the_same_command_ends_with_the_same_labels(
    own_cache, command, expected, wait_for, tmp_path
):
    kept, run = 0, tmp_path / "run"
    for moment, has_come in MOMENTS.items():
        for _ in range(20):
            process = own_cache.start(*command)
            wait_for(lambda has_come=has_come: has_come(run, own_cache), process)
            process.send(signal.SIGKILL)
            code = process.wait().code
            if not is_finished(run):
                break
            # On a busy machine the moment has passed before the kill.
            shutil.rmtree(run)
        assert code == -signal.SIGKILL, moment
        assert n_encoded(own_cache) >= kept, moment
        kept = n_encoded(own_cache)
        with pytest.raises(InputError):
            open_run(run)
    assert own_cache(*command).json["n_encoded"] == N_IMAGES - kept
    assert open_run(run).labels.tolist() == expected
    assert list(run.rglob("*.nouncut-new")) == []


def test_of_two_runs_at_once_in_one_directory_the_second_says_so(
    own_cache, command, wait_for, tmp_path
):
    first = own_cache.start(*command)
    wait_for(lambda: (tmp_path / "run" / "manifest.json").exists(), first)
    first.send(signal.SIGSTOP)
    second = own_cache(*command, code=5)
    assert "Another process is writing a run" in second.err
    first.send(signal.SIGCONT)
    assert first.wait().json["n_images"] == N_IMAGES
