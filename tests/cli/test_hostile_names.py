"""File names and words that try to be something else."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from nouncut.exports.registry import EXPORTS
from nouncut.runs.run import open_run

ATTACK = "document.documentElement.dataset.attacked=1"
NAMES = (
    'double"quote.png',
    "single'quote.png",
    "two\nlines.png",
    "kitten \N{CAT FACE}.png",
    "[red]x[/red].png",
    "\x1b[31mred\x1b[0m.png",
    "undecodable \udce9\udcff.png",
    "-k 99.png",
    f'" onerror="{ATTACK}.png',
    f"<img src=x onerror={ATTACK}>.png",
    # The separator of folders ends a script.
    f"<script>{ATTACK}</script>.png",
    f"--><script>{ATTACK}</script>.png",
    "${7*7}{{7*7}}.png",
)
WORDS = (f"<script>{ATTACK}</script>", f"<img src=x onerror={ATTACK}>", "[bold]dog[/bold]", "cat")


@pytest.fixture(scope="module")
def run(nouncut_in, draw, cache, tiny_clip, tmp_path_factory):
    """Return how the command ended, and its run."""
    folder = tmp_path_factory.mktemp("hostile")
    drawn = draw(folder / "drawn", range(len(NAMES) + 4))
    for name, picture in zip(NAMES, drawn, strict=False):
        place = folder / "photos" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            picture.rename(place)
        except OSError:
            # Not every system takes every name.
            picture.rename(place.with_name(picture.name))
    for picture in drawn[len(NAMES) :]:
        picture.rename(folder / "photos" / picture.name)
    (folder / "photos" / f"<img src=x onerror={ATTACK}>.jpg").touch()
    (folder / "photos" / "[red]empty\n.jpg").touch()
    (folder / "words.txt").write_text("\n".join(WORDS))
    nouncut = nouncut_in(folder, cache)
    options = ("--model", tiny_clip, "--vocabulary", "words.txt", "-k", 4, "-o", "run <b>")
    ended = nouncut("cluster", "photos", *options)
    return nouncut, ended, open_run(folder / "run <b>")


def test_all_of_them_are_clustered(run):
    _, _, made = run
    found = {os.fspath(path) for path in made.paths()}
    assert len(found) == len(NAMES) + 4
    assert all(any(path.endswith(name) for path in found) for name in NAMES)


def test_what_is_printed_is_what_was_meant(run):
    _, ended, made = run
    assert (ended.out + ended.err).replace("\n", "").isprintable()
    assert "[red]empty\\n.jpg" in ended.err
    for name in made.names:
        assert name[:12] in ended.out


def test_other_commands_can_take_them(run, tmp_path):
    nouncut, _, made = run
    photos = made.directory.parent / "photos"
    assert (
        len(nouncut("predict", made.directory, photos, "--json").json["images"]) == len(NAMES) + 4
    )
    shown = nouncut("predict", made.directory, photos)
    assert (shown.out + shown.err).replace("\n", "").isprintable()
    for form in EXPORTS:
        ended = nouncut("export", made.directory, "--to", form, "-o", tmp_path / f"{form}.parquet")
        # FiftyOne takes no names that are not text, and the export says so.
        n_left_out = 1 if form == "fiftyone" else 0
        assert f"{len(NAMES) + 4 - n_left_out} written" in ended.out
        assert ("left out" in ended.err) == bool(n_left_out)
        assert (ended.out + ended.err).replace("\n", "").isprintable()


def test_names_that_look_like_options(run):
    nouncut, _, made = run
    photos = made.directory.parent / "photos"
    found = nouncut("predict", made.directory, "--json", "--", "-k 99.png", cwd=photos).json
    assert [os.path.basename(one["path"]) for one in found["images"]] == ["-k 99.png"]


class Elements(HTMLParser):
    """All elements of a page, with the text of scripts."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])

    def handle_data(self, data):
        if self.found:
            self.found[-1][2] += data


def check_page(page):
    elements = Elements()
    elements.feed(page)
    for tag, attributes, text in elements.found:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert attributes.get("src") != "x"
        assert "data-attacked" not in attributes
        if tag == "script":
            assert not text.strip().startswith(ATTACK)
            assert text.strip() != ATTACK
    return elements.found


def test_nothing_of_them_is_an_element_of_the_report(run):
    _, _, made = run
    assert len(check_page(made.report.read_text(encoding="utf-8"))) > 50


@pytest.mark.skipif(not shutil.which("chromium"), reason="no browser")
def test_nothing_of_them_runs_in_a_browser(run, tmp_path):
    _, _, made = run
    shown = subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}",
            "--virtual-time-budget=2000",
            "--dump-dom",
            made.report.as_uri(),
        ],
        capture_output=True,
        timeout=120,
        check=True,
    ).stdout.decode(errors="replace")
    assert check_page(shown)[0][0] == "html"
    # The page's own script ran: it has drawn what the file has not.
    assert len(shown) > 10_000
