"""Whole stories in the explorer: a real model, a real server, a real browser."""

from __future__ import annotations

import csv
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from nouncut.cli.demo import demo_images
from nouncut.runs.run import Run, open_run
from nouncut.workflow import cluster_images

DESKTOP = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "has_touch": True}
BIRDS = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "build_demo.py"))["BIRDS"]
KINDS = ("owl", "chicken", "parrot", "songbird", "duck")
DOGS = ("cocker spaniel", "beagle", "poodle")


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory, shared_store) -> Run:
    """Return a run of photographs by the embedded model, with three groups named after dogs."""
    folder = tmp_path_factory.mktemp("stories")
    # A few more groups than kinds: some may be one, but there are no groups of groups.
    paths = [demo_images().folder / f"s{number:04}.jpg" for kind in KINDS for number in BIRDS[kind]]
    copy = shutil.copy(paths[0], folder / "copy.jpg")
    run = cluster_images([*sorted(paths), copy], 8, output=folder / "run", store=shared_store)
    for number, name in zip(run.clusters["cluster"].to_pylist()[1:4], DOGS, strict=True):
        run.rename(number, name)
    return run


@pytest.fixture
def run(finished_run, tmp_path) -> Run:
    """Return a copy of the run that a test may edit."""
    return open_run(shutil.copytree(finished_run.directory, tmp_path / "run"))


@contextmanager
def command(directory: Path) -> Iterator[str]:
    """Run the explorer in a process of its own; the address is what it says."""
    words = [sys.executable, "-m", "nouncut", "explore", str(directory), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        said = iter(process.stdout.readline, "")
        found = (re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line) for line in said)
        try:
            yield next(match[0] for match in found if match)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


class Visit:
    """A page that shows the explorer."""

    def __init__(
        self, browser: Any, server: AbstractContextManager[str], options: dict[str, Any]
    ) -> None:
        self.server = ExitStack()
        address = self.server.enter_context(server)
        self.origin = address.split("/?")[0]
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**{"locale": "en-US"} | options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
        self.page.wait_for_selector("#tree [data-cluster]", state="attached")
        self.until("typeof place !== 'undefined' && place.now().rows.length > 0")

    def until(self, expression: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, expression
            self.page.wait_for_timeout(20)

    def group(self, name: str) -> int:
        return self.page.evaluate(
            "(name) => report.groups().find((g) => g.name === name).number", name
        )

    def sizes(self) -> dict[str, int]:
        found = self.page.evaluate("report.groups().map((group) => [group.name, group.size])")
        return dict(map(tuple, found))

    def show_groups(self) -> None:
        if self.page.locator(".views").is_visible():
            self.page.click("[data-show=groups]")

    def show_group(self, name: str) -> None:
        self.show_groups()
        self.page.click(f"#tree [data-cluster='{self.group(name)}'] > .group-line")

    def after_edit(self, action: Callable[[], None]) -> None:
        """Do something, and wait until the page shows the groups after the edit."""
        version = self.page.evaluate("report.version")
        action()
        self.until(f"report.version !== {version!r} && !document.body.matches('.is-busy')")

    def close(self) -> None:
        self.context.close()
        self.server.close()
        assert self.problems == []
        outside = [
            url
            for url in self.requests
            if not url.startswith((f"{self.origin}/", "data:", "blob:"))
        ]
        assert outside == []


@pytest.fixture
def visit(browser, run, serve) -> Iterator[Callable[..., Visit]]:
    """Return a maker of visits, to a server in this process unless `start` starts another."""

    @contextmanager
    def serve_here(directory: Path) -> Iterator[str]:
        with serve(open_run(directory)) as served:
            yield served.access.address

    def go(
        options: dict[str, Any] = DESKTOP,
        directory: Path = run.directory,
        start: Callable[[Path], AbstractContextManager[str]] | None = None,
    ) -> Visit:
        seen = Visit(browser, (start or serve_here)(directory), options)
        opened.callback(seen.close)
        return seen

    with ExitStack() as opened:
        yield go


@pytest.mark.parametrize("options", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_find_merge_split_move_undo_return_and_export(visit, run, tmp_path, options):
    start = command if options is DESKTOP else None
    seen = visit(options, start=start)
    page = seen.page
    before = seen.sizes()

    page.fill("#search", "dog")
    page.wait_for_selector("#found-groups .chip")
    assert {chip.split("\n")[0] for chip in page.locator(".chip").all_inner_texts()} == set(DOGS)
    n_dogs = sum(before[name] for name in DOGS)
    assert f"{n_dogs} by name" in page.inner_text("#place-title")

    numbers = [seen.group(name) for name in DOGS]
    seen.show_group(DOGS[0])
    seen.show_groups()
    for number in numbers[1:]:
        page.click(f"#tree [data-cluster='{number}'] > .group-line", modifiers=["Control"])
    assert page.inner_text("#merge-groups") == f"Merge 3 groups, {n_dogs} images"
    seen.after_edit(lambda: page.click("#merge-groups"))
    (largest,) = set(DOGS) & set(seen.sizes())
    assert before[largest] == max(before[name] for name in DOGS)
    assert seen.sizes()[largest] == n_dogs

    page.click("#place-actions >> text=Split")
    page.select_option("#splitter-parts", "2")
    page.wait_for_selector("#splitter-preview .part >> nth=1")
    page.fill("#splitter-preview input", "small dogs")
    seen.after_edit(lambda: page.click("#splitter-do"))
    parts = seen.sizes()
    assert parts[largest] + parts["small dogs"] == n_dogs

    seen.show_group("small dogs")
    for index in range(5):
        page.locator("#tiles .tile").nth(index).locator(".check").click()
    assert page.inner_text("#move-chosen") == "Move 5 to…"
    page.click("#move-chosen")
    page.fill("#chooser-input", largest)
    seen.after_edit(lambda: page.keyboard.press("Enter"))
    assert seen.sizes()[largest] == parts[largest] + 5

    seen.after_edit(lambda: page.click("#undo"))
    assert seen.sizes() == parts
    seen.after_edit(lambda: page.click("#undo"))
    assert "small dogs" not in seen.sizes()
    seen.after_edit(lambda: page.click("#redo"))
    assert seen.sizes() == parts
    seen.close()

    again = visit(options, start=start)
    assert again.sizes() == parts
    page = again.page
    page.click("#export-all")
    page.select_option("#exporter-kind", "csv")
    page.fill("#exporter-place", str(tmp_path / "table.csv"))
    page.wait_for_selector("#exporter-do:enabled")
    page.click("#exporter-do")
    page.wait_for_selector("#toast:visible")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    assert names == open_run(run.directory).assignments["name"].to_pylist()
    again.close()


def test_everything_by_keyboard_alone(visit, run):
    seen = visit()
    page = seen.page

    page.keyboard.press("1")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    first = page.evaluate("place.now().about.number")
    page.keyboard.press("r")
    page.keyboard.type("first of all")
    seen.after_edit(lambda: page.keyboard.press("Enter"))
    assert "first of all" in seen.sizes()

    page.keyboard.press("3")
    for key in ("ArrowRight", "Space", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    assert page.inner_text("#chosen-count") == "3 images selected"
    page.keyboard.press("g")
    page.keyboard.type("by keyboard")
    seen.after_edit(lambda: page.keyboard.press("Enter"))
    assert seen.sizes()["by keyboard"] == 3

    page.keyboard.press("3")
    page.keyboard.press("Control+a")
    seen.after_edit(lambda: page.keyboard.press("x"))
    assert "by keyboard" not in seen.sizes()
    assert page.evaluate("report.nSetAside") == 3
    seen.after_edit(lambda: page.keyboard.press("Control+z"))
    seen.after_edit(lambda: page.keyboard.press("Control+Shift+Z"))
    seen.after_edit(lambda: page.keyboard.press("Control+z"))
    assert seen.sizes()["by keyboard"] == 3

    page.keyboard.press("1")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowDown")
    n_before = len(seen.sizes())
    seen.after_edit(lambda: page.keyboard.press("m"))
    assert len(seen.sizes()) == n_before - 1

    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_selector("#picture[open]")
    seen.until("document.getElementById('picture-name').textContent !== ''")
    name = page.inner_text("#picture-name")
    page.keyboard.press("ArrowRight")
    seen.until(f"document.getElementById('picture-name').textContent !== {name!r}")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert first in open_run(run.directory).names_by_cluster


def test_pictures_are_dragged_to_a_group(visit):
    seen = visit()
    page, before = seen.page, seen.sizes()
    seen.show_group(DOGS[0])
    tiles = page.locator("#tiles .tile")
    tiles.nth(0).click()
    tiles.nth(2).click(modifiers=["Control"])
    target = page.locator(f"#tree [data-cluster='{seen.group(DOGS[1])}'] > .group-line")
    seen.after_edit(lambda: tiles.nth(2).drag_to(target))
    assert seen.sizes()[DOGS[1]] == before[DOGS[1]] + 2
    assert page.locator("#chosen").is_hidden()


def test_map_and_pictures_are_linked_both_ways(visit):
    seen = visit()
    page = seen.page
    row = page.evaluate("report.membersOf(report.cluster[40])[3]")
    x, y = page.evaluate(f"points.position(camera.view(), {row})")
    box = page.locator("#map-canvas").bounding_box()
    page.mouse.click(box["x"] + x, box["y"] + y)
    seen.until(f"document.querySelector('#tile-{row}.is-current') !== null")
    page.hover(f"#tile-{row}")
    seen.until(f"map.ringed() === {row}")
    page.mouse.move(2, 2)
    seen.until("map.ringed() === -1")


def test_a_box_on_the_map_selects_pictures(visit):
    seen = visit()
    page = seen.page
    page.click("[data-tool=box]")
    box = page.locator("#map-canvas").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 5, steps=4)
    page.mouse.up()
    n_chosen = page.evaluate("selection.rows().length")
    assert 0 < n_chosen < 90
    assert page.inner_text("#set-aside") == f"Set aside {n_chosen}"
    page.keyboard.press("Escape")
    assert page.evaluate("selection.rows().length") == 0


def test_why_a_picture_is_where_it_is(visit):
    seen = visit()
    page = seen.page
    page.evaluate("picture.open([7], 0)")
    page.wait_for_selector("#picture-reasons .tile")
    assert page.inner_text("#picture-reasons h3") == "Why here?"
    assert page.locator("#picture-facts dd").first.inner_text()
    seen.until("document.getElementById('picture-image').src.includes('/images/7')")


def test_more_like_this_starts_with_the_picture(visit):
    seen = visit()
    seen.page.evaluate("selection.set([7])")
    seen.page.click("#like-chosen")
    seen.until("place.now().kind === 'found'")
    assert seen.page.evaluate("place.now().rows[0]") == 7


def test_extra_copies_are_selected_and_set_aside(visit, run):
    seen = visit()
    page = seen.page
    page.click("[data-place=duplicates]")
    page.wait_for_selector("#tiles .tile[data-set='1']")
    assert page.get_attribute("[data-place=duplicates]", "aria-current") == "true"
    sets = page.evaluate("place.now().sets")
    copy = [Path(path).name for path in run.paths()].index("copy.jpg")
    assert any(copy in one for one in sets), (copy, sets)
    n_extra = sum(len(one) - 1 for one in sets)
    page.click(f"#place-actions >> text=/Select {n_extra} extra cop/")
    assert sorted(page.evaluate("[...selection.rows()]")) == sorted(
        row for one in sets for row in one[1:]
    )
    seen.after_edit(lambda: page.click(f"text=Set aside {n_extra}"))
    assert page.evaluate("report.nSetAside") == n_extra
    page.click("[data-place=all]")
    assert page.locator("#tiles .tile[data-set]").count() == 0


def test_words_that_the_model_does_not_know_are_said(visit):
    page = visit().page
    page.fill("#search", "xyzzyq")
    page.wait_for_selector("#empty >> text=knows no word of xyzzyq")
    assert page.inner_text("#place-title") == "“xyzzyq”"
    page.fill("#search", "")
    page.wait_for_selector("#empty", state="hidden")


def test_suggestions_are_merged_kept_apart_or_asked_later(visit, run):
    seen = visit()
    page = seen.page
    page.wait_for_selector("#ask:visible")
    n_asked = int(page.inner_text("#ask-count"))
    assert n_asked >= 2
    page.click("#ask")
    page.wait_for_selector("#asker[open]")
    pair = page.evaluate("document.getElementById('asker-groups').textContent")
    page.keyboard.press("l")
    seen.until(f"document.getElementById('asker-groups').textContent !== {pair!r}")
    seen.after_edit(lambda: page.keyboard.press("n"))
    seen.until(f"Number(document.getElementById('ask-count').textContent) === {n_asked - 1}")
    n_groups = len(seen.sizes())
    seen.after_edit(lambda: page.keyboard.press("y"))
    assert len(seen.sizes()) == n_groups - 1
    page.keyboard.press("Escape")
    kinds = [one.edit["kind"] for one in open_run(run.directory).edits[-2:]]
    assert kinds == ["apart", "merge"]


def test_edits_from_elsewhere_are_shown_and_kept(visit, run):
    seen = visit()
    page = seen.page
    open_run(run.directory).rename(DOGS[0], "from elsewhere")
    seen.show_group(DOGS[1])
    page.click("text=Rename")
    page.fill("#namer-input", "mine")
    page.keyboard.press("Enter")
    page.wait_for_selector("#tree >> text=from elsewhere")
    seen.show_group(DOGS[1])
    page.click("text=Rename")
    page.fill("#namer-input", "mine")
    seen.after_edit(lambda: page.keyboard.press("Enter"))
    assert {"from elsewhere", "mine"} <= set(open_run(run.directory).names)
    # The browser itself reports the refused request.
    seen.problems = [text for text in seen.problems if "409" not in text]


def test_names_that_bite_are_shown_as_text(visit, make_run, tmp_path):
    hostile = make_run(tmp_path / "hostile")
    seen = visit(directory=hostile.directory)
    shown = seen.page.locator("#tree .group-name").all_text_contents()
    assert set(shown) == set(hostile.names)
    seen.page.evaluate("picture.open([5, 0, 1], 0)")
    seen.until("document.getElementById('picture-name').textContent.includes('script')")
    assert seen.page.locator("#picture-name script, #tree script, #tree b").count() == 0


@pytest.mark.parametrize(
    "options",
    [DESKTOP | {"color_scheme": "dark"}, PHONE | {"color_scheme": "light"}, DESKTOP, PHONE],
    ids=["desktop-dark", "phone-light", "desktop-light", "phone-dark"],
)
def test_no_serious_accessibility_violations(visit, options):
    from axe_playwright_python.sync_playwright import Axe

    seen = visit(options | {"bypass_csp": True})
    page = seen.page

    def serious() -> list[str]:
        found = Axe().run(page).response["violations"]
        return [
            f"{one['id']}: {one['nodes'][0]['html']} {one['nodes'][0].get('failureSummary')}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    assert serious() == []
    number = seen.group(DOGS[0])
    page.evaluate(f"place.showGroup({number}); selection.set([1, 2, 3])")
    assert serious() == []
    for view in ("groups", "map") if options["viewport"]["width"] < 500 else ():
        page.click(f"[data-show={view}]")
        assert serious() == []
    for opening in (
        "picture.open([1, 2], 0)",
        "chooser.move([1])",
        f"namer.rename({number})",
        f"splitter.open({number})",
        "asker.open()",
        "past.open()",
        "exporter.open()",
        "dialogs.open(document.getElementById('help'))",
    ):
        page.evaluate(f"document.querySelector('dialog[open]')?.close(); {opening}")
        page.wait_for_selector("dialog[open]")
        page.wait_for_timeout(300)
        seen.until("document.getAnimations().every((one) => one.playState !== 'running')")
        assert serious() == [], opening
