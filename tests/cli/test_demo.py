"""The photographs of the demo, and what ``nouncut demo`` does after clustering them."""

from __future__ import annotations

import os
import pty
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from nouncut.cli import demo
from nouncut.cli.demo import demo_images
from nouncut.errors import InputError
from nouncut.images.open import open_image
from nouncut.runs.run import open_run

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "nouncut", "demo"]


def test_every_photograph_can_be_opened():
    sides = {max(open_image(path).size) for path in demo_images().paths}
    assert sides == {120, 256}


def test_the_birds_are_those_of_the_script():
    birds = runpy.run_path(str(ROOT / "scripts" / "build_demo.py"))["BIRDS"]
    listed = [f"s{number:04}.jpg" for numbers in birds.values() for number in numbers]
    found = [path.name for path in demo_images().paths if path.suffix == ".jpg"]
    assert sorted(listed) == found


def test_licence_and_photographers_are_named():
    images = demo_images()
    credits_file = images.folder.with_name("CREDITS.md")
    assert "CC BY 2.0" in images.attribution
    assert str(credits_file) in images.attribution
    text = credits_file.read_text(encoding="utf-8")
    free = re.findall(
        r"^\| (p\d+\.webp) \| .+ \| <https://\S+> \| (?:public domain|CC0 1\.0) \|$", text, re.M
    )
    assert free == [path.name for path in images.paths if path.suffix == ".webp"]
    assert f"The {len(images.paths) - len(free)} photographs `s0001.jpg`" in text
    assert len(re.findall(r"^- \".*\" — https?://\S+$", text, re.M)) == 919


def test_missing_photographs_are_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_FOLDER", tmp_path)
    with pytest.raises(InputError, match="Install nouncut again"):
        demo_images()


@pytest.fixture(scope="module")
def shown(nouncut_in, tmp_path_factory):
    """Return a command that has shown the demo once, with the embedded model, and its words."""
    nouncut = nouncut_in(tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("cache"))
    return nouncut, nouncut("demo")


@pytest.fixture
def environment(shown):
    # A browser that does nothing.
    return os.environ | {"NOUNCUT_CACHE": str(shown[0].cache), "BROWSER": "true %s"}


def test_the_groups_are_convincing(shown):
    run = open_run(shown[0].folder / "nouncut-runs" / "demo")
    birds = runpy.run_path(str(ROOT / "scripts" / "build_demo.py"))["BIRDS"]
    kinds = {kind: {f"s{number:04}.jpg" for number in birds[kind]} for kind in birds}
    # The first photographs of GCompris are those of fish.
    kinds["fish"] = {f"p{number:03}.webp" for number in range(1, 29)}
    groups = {number: set() for number in run.names_by_cluster}
    for path, number in zip(run.paths(), run.labels, strict=True):
        groups[number].add(path.name)
    names = {"penguin": "king penguin", "hummingbird": "hummingbird", "chicken": "hen", "fish": ""}
    for kind, name in names.items():
        number = max(groups, key=lambda n: len(groups[n] & kinds[kind]))
        found = groups[number]
        assert len(found & kinds[kind]) >= 0.8 * len(found | kinds[kind]), kind
        assert name in run.names_by_cluster[number]
    assert 12 <= len(groups) <= 24


def test_it_says_where_everything_is_and_what_to_do_next(shown):
    nouncut, ended = shown
    assert (nouncut.folder / "nouncut-runs" / "demo" / "report.html").is_file()
    assert f"{len(demo_images().paths)} images in" in ended.out
    assert "nouncut cluster FOLDER" in ended.out
    assert "nouncut explore nouncut-runs/demo" in ended.out
    assert "CC BY 2.0" in ended.err
    # Nothing is asked where nobody can answer.
    assert "browser now?" not in ended.out


def test_on_a_terminal_it_asks(shown, environment):
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    process = subprocess.Popen(
        COMMAND, cwd=shown[0].folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = read_to_end(ours)
    assert process.wait(60) == 0, said
    assert "Look at the groups in the browser now? [Y/n]" in said
    assert "http://127.0.0.1" not in said


def read_to_end(terminal: int) -> str:
    said = b""
    try:
        while part := os.read(terminal, 4096):
            said += part
    except OSError:
        # Linux reports the end of a terminal as an error.
        pass
    return said.decode(errors="replace")


def test_with_explore_the_explorer_opens(shown, environment):
    process = subprocess.Popen(
        [*COMMAND, "--explore"],
        cwd=shown[0].folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    lines = iter(process.stdout.readline, "")
    found = (re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line) for line in lines)
    address = next(match[0] for match in found if match)
    # An answer tells that the server runs; before, Ctrl+C would interrupt the command.
    with build_opener(HTTPCookieProcessor()).open(address, timeout=60) as answer:
        assert b"<title>" in answer.read()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
