from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from nouncut.errors import ModelError
from nouncut.models import hub as model_hub

REPOSITORY = "owner/model"


@pytest.fixture
def repository(hub):
    folder = hub.root / REPOSITORY
    (folder / "onnx").mkdir(parents=True)
    for name in (
        "config.json",
        "onnx/model.onnx",
        "onnx/model_int8.onnx",
        "odd[1].txt",
        "odd1.txt",
    ):
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def deaf_hub(monkeypatch):
    """Name a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        yield


def test_a_hub_that_shows_the_repository_answers(hub, repository):
    assert model_hub.hub_answers(REPOSITORY)
    assert not model_hub.hub_answers("owner/unknown")


def test_a_hub_that_does_not_answer_costs_two_seconds_at_most(deaf_hub):
    start = time.monotonic()
    assert not model_hub.hub_answers(REPOSITORY)
    assert time.monotonic() - start < 60


def test_a_name_server_that_does_not_answer_costs_two_seconds_at_most(monkeypatch):
    is_over = threading.Event()

    def silent(*arguments, **keywords):
        assert is_over.wait(60)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    try:
        assert not model_hub.hub_answers(REPOSITORY, seconds=0.3)
    finally:
        is_over.set()


@pytest.mark.parametrize("answer", [b"", b"220 mail\r\n", b"HTTP/1.1 503 busy\r\n\r\n"])
def test_an_answer_of_another_server_is_no_answer(monkeypatch, answer):
    def speak(server):
        connection, _ = server.accept()
        # A slow machine has given up waiting by then.
        with connection, suppress(OSError):
            connection.recv(1000)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        speaker = threading.Thread(target=speak, args=(server,))
        speaker.start()
        assert not model_hub.hub_answers(REPOSITORY)
        speaker.join()


def test_a_closed_port_is_no_answer(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert not model_hub.hub_answers(REPOSITORY)


def test_that_the_hub_did_not_answer_is_remembered_for_a_day(monkeypatch, tmp_path):
    monkeypatch.setenv("NOUNCUT_CACHE", str(tmp_path / "new"))
    assert model_hub.hours_since_no_answer() is None
    model_hub.remember_no_answer()
    assert 0 <= model_hub.hours_since_no_answer() < 0.1
    now = time.time()
    for hours, known in ((23.5, True), (24.5, False), (-1, False)):
        monkeypatch.setattr(time, "time", lambda later=now + 3600 * hours: later)
        assert (model_hub.hours_since_no_answer() is not None) == known


def test_a_damaged_memory_is_forgotten(monkeypatch, tmp_path):
    monkeypatch.setenv("NOUNCUT_CACHE", str(tmp_path))
    model_hub.remember_no_answer()
    (note,) = tmp_path.iterdir()
    note.write_bytes(b"\xff\x00")
    assert model_hub.hours_since_no_answer() is None


def test_a_cache_that_cannot_be_written_does_no_harm(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NOUNCUT_CACHE", str(tmp_path / "file" / "cache"))
    model_hub.remember_no_answer()
    assert model_hub.hours_since_no_answer() is None


def test_only_the_wanted_files_are_downloaded(hub, repository):
    sizes = model_hub.list_repository(REPOSITORY)
    assert sizes["onnx/model.onnx"] == len("onnx/model.onnx")
    assert model_hub.cached_snapshot(REPOSITORY) is None
    seen = []
    wanted = ["config.json", "onnx/model.onnx"]
    folder = model_hub.download(REPOSITORY, wanted, 2_000_000, lambda *step: seen.append(step))
    assert sorted(hub.handler.downloaded) == [f"{REPOSITORY}/{name}" for name in wanted]
    assert (folder / "onnx/model.onnx").read_text() == "onnx/model.onnx"
    assert model_hub.cached_snapshot(REPOSITORY) == folder
    stage = f"downloading {REPOSITORY} (MB)"
    assert seen[0] == (stage, 0, 2)
    assert seen[-1] == (stage, 2, 2)


def test_without_progress_the_client_may_draw_its_bars(hub, repository):
    from huggingface_hub import utils

    model_hub.download(REPOSITORY, ["config.json"], 1, lambda *step: None)
    assert not utils.are_progress_bars_disabled()
    assert (model_hub.download(REPOSITORY, ["odd[1].txt"], 1, None) / "odd[1].txt").exists()


def test_an_unknown_repository_is_explained(hub):
    with pytest.raises(ModelError, match=r"'owner/unknown'.*could not be downloaded.*'mini'"):
        model_hub.list_repository("owner/unknown")


def test_downloads_can_be_forbidden(hub, repository, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match=r"HF_HUB_OFFLINE forbids.*'mini'"):
        model_hub.list_repository(REPOSITORY)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"HF_HUB_CACHE": "{tmp}/a", "HF_HOME": "{tmp}/b"}, "a"),
        ({"HUGGINGFACE_HUB_CACHE": "{tmp}/a"}, "a"),
        ({"HF_HOME": "{tmp}/b"}, "b/hub"),
        ({"XDG_CACHE_HOME": "{tmp}/c"}, "c/huggingface/hub"),
        ({"HOME": "{tmp}/d"}, "d/.cache/huggingface/hub"),
    ],
)
def test_the_cache_is_the_one_of_the_hubs_client(monkeypatch, tmp_path, variables, expected):
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    assert model_hub.hub_cache() == tmp_path / expected
    code = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
    theirs = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert theirs.stdout.strip() == str(tmp_path / expected)


@pytest.mark.parametrize("commit", ["", "../../../../etc", "0" * 39])
def test_a_damaged_cache_is_no_download(hub, monkeypatch, tmp_path, commit):
    root = tmp_path / "downloads/models--owner--model"
    (root / "refs").mkdir(parents=True)
    (root / "snapshots").mkdir()
    (root / "refs/main").write_text(commit)
    assert model_hub.cached_snapshot(REPOSITORY) is None
