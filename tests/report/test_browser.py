"""The report in a real browser."""

from __future__ import annotations

import json
import os
import shutil
import time
from base64 import b64decode
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from nouncut.images.hashing import content_hash
from nouncut.report.write import write_report
from nouncut.runs.renames import read_names, write_names
from nouncut.runs.run import Run, open_run
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
from nouncut.runs.writer import RunContents, RunWriter

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = os.environ.get("NOUNCUT_CHROMIUM") or shutil.which("chromium")
# Where tests are run for others to rely on, a missing browser is a failure.
if not (CHROMIUM and find_spec("playwright")) and not os.environ.get("CI"):
    pytest.skip(
        "needs playwright and a Chromium (apt install chromium, or NOUNCUT_CHROMIUM=path)",
        allow_module_level=True,
    )

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = [
    'double"quote.png',
    "two\nlines.png",
    "kitten \N{CAT FACE}.png",
    "<script>alert(1)<br>.png",
    "javascript:alert(1).png",
    "&amp;{{ 7 * 7 }}.png",
    "undecodable \udce9\udcff.png",
    "100 %20.png",
]
NAMES = ["red <b>things</b>", "</script><script>alert('x')</script>", "blue\n\N{SNAKE} 'sea'"]
N_IMAGES = 90


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def coloured_run(tmp_path_factory) -> Run:
    """Return a run of three clusters that lie far apart, with names that bite."""
    folder = tmp_path_factory.mktemp("coloured")
    rng = np.random.default_rng(0)
    labels = np.arange(N_IMAGES) % 3
    paths = [_draw(folder / "photos", row, rng) for row in range(N_IMAGES)]
    centres = np.array([[0.1, 0.1], [0.9, 0.1], [0.5, 0.9]])
    layout = centres[labels] + rng.uniform(-0.08, 0.08, (N_IMAGES, 2))
    run = _write(folder / "run", paths, labels, layout.astype(np.float32))
    write_report(run)
    return run


def _draw(photos: Path, row: int, rng: np.random.Generator) -> Path:
    photos.mkdir(exist_ok=True)
    pixels = rng.integers(0, 60, (48, 64, 3), dtype=np.uint8)
    pixels[..., row % 3] += 190
    path = photos / (HOSTILE[row] if row < len(HOSTILE) else f"{row}.png")
    Image.fromarray(pixels).save(os.fspath(path), "PNG")
    return path


def _write(directory: Path, paths: list[Path], labels: np.ndarray, layout: np.ndarray) -> Run:
    n_images, n_clusters = len(paths), labels.max() + 1
    second = (labels + 1) % n_clusters
    members = [np.flatnonzero(labels == cluster).tolist() for cluster in range(n_clusters)]
    images = images_table(paths, hashes=[content_hash(path) for path in paths])
    contents = RunContents(
        manifest={
            "source": [str(paths[0].parent)],
            "source_kind": "images",
            "model": {"name": "mini", "embedded": True},
            "nouns": {"words": ["sea", "<rose>"]},
        },
        assignments=pa.table(
            {
                "path": images["path"],
                "cluster": labels,
                "name": [NAMES[label] for label in labels],
                "confidence": np.linspace(1, 0.5, n_images),
                "second_cluster": second,
                "second_name": [NAMES[label] for label in second],
                "second_confidence": np.linspace(0, 0.5, n_images),
                "outlier": np.arange(n_images) >= n_images - 3,
            },
            schema=ASSIGNMENTS_SCHEMA,
        ),
        clusters=pa.table(
            {
                "cluster": range(n_clusters),
                "name": NAMES,
                "more_words": [["rose"], [], ["ocean"]],
                "gloss": ["a <colour>", "", "the sea"],
                "size": [len(rows) for rows in members],
                "cohesion": [0.5, 0.9, 0.7],
                "exemplars": [rows[:12] for rows in members],
                "borderline": [rows[::-1][:12] for rows in members],
            },
            schema=CLUSTERS_SCHEMA,
        ),
        images=images,
        arrays={"layout": layout},
    )
    with RunWriter(directory) as writer:
        return writer.finish(contents)


class Visit:
    """A page that is being looked at, and what it asked for and complained of."""

    def __init__(self, page: Page, report: Path) -> None:
        self.page, self.report = page, report
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(report.as_uri())
        self.until("document.readyState === 'complete'")

    def until(self, expression: str, seconds: float = 10) -> None:
        """Wait; Playwright's own way would need a page that lets strings run as scripts."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, expression
            self.page.wait_for_timeout(20)

    def canvas(self) -> Image.Image:
        """Return what the map shows."""
        address = self.page.evaluate("document.getElementById('map-canvas').toDataURL()")
        return Image.open(BytesIO(b64decode(address.split(",")[1]))).convert("RGB")

    def zoom(self) -> float:
        return float(self.page.get_attribute("#map-frame", "data-zoom"))

    def place(self, row: int) -> tuple[float, float]:
        """Return where the dot of a row is on the screen."""
        self.page.locator("#map-canvas").scroll_into_view_if_needed()
        x, y = self.page.evaluate(f"points.position(camera.view(), {row})")
        box = self.page.locator("#map-canvas").bounding_box()
        return box["x"] + x, box["y"] + y

    def corner(self, x: float, y: float) -> tuple[float, float]:
        """Return a place within the map, given in shares of its size."""
        box = self.page.locator("#map-canvas").bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]


@pytest.fixture
def visit(browser: Browser, coloured_run):
    """Return a visitor of reports, who must find nothing to complain of in the end."""
    visits: list[Visit] = []
    contexts = []

    def go(report: Path = coloured_run.report, **options) -> Visit:
        options = {"viewport": {"width": 1280, "height": 800}} | options
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(10_000)
        visits.append(Visit(contexts[-1].new_page(), report))
        return visits[-1]

    yield go
    for one in visits:
        assert one.problems == []
        beside = f"{one.report.parent.as_uri()}/report-thumbnails/"
        for url in one.requests:
            assert url == one.report.as_uri() or url.startswith(("data:", "blob:", beside))
    for context in contexts:
        context.close()


def test_the_map_draws_every_cluster_in_its_colour(visit):
    seen = visit()
    pixels = np.asarray(seen.canvas()).reshape(-1, 3)
    for cluster in range(3):
        colour = seen.page.evaluate(f"colours.of({cluster})")
        assert (np.abs(pixels - np.array(colour)).max(axis=1) < 12).sum() > 100


def test_dots_lie_where_the_layout_says(visit):
    seen = visit()
    seen.page.evaluate("photos.typical = () => null, map.redraw()")
    seen.page.wait_for_timeout(100)
    x, y = seen.page.evaluate("points.position(camera.view(), 5)")
    nearby = np.asarray(seen.canvas())[int(y) - 3 : int(y) + 4, int(x) - 3 : int(x) + 4]
    expected = np.array(seen.page.evaluate("colours.of(report.cluster[5])"))
    assert np.abs(nearby.reshape(-1, 3) - expected).max(axis=1).min() < 40


def test_zoom_by_wheel_buttons_keys_and_double_click(visit):
    seen = visit()
    page = seen.page
    middle = seen.corner(0.5, 0.5)
    page.mouse.move(*seen.corner(0.4, 0.4))
    page.mouse.move(*middle)
    assert seen.zoom() == 1
    page.mouse.wheel(0, -400)
    seen.until("document.getElementById('map-frame').dataset.zoom > 1.2")
    page.click("#zoom-fit")
    seen.until("document.getElementById('map-frame').dataset.zoom == 1")
    page.click("#zoom-in")
    seen.until("document.getElementById('map-frame').dataset.zoom > 1.5")
    page.click("#zoom-out")
    seen.until("document.getElementById('map-frame').dataset.zoom == 1")
    page.mouse.dblclick(*middle)
    seen.until("document.getElementById('map-frame').dataset.zoom == 2")
    page.focus("#map-canvas")
    page.keyboard.press("+")
    seen.until("document.getElementById('map-frame').dataset.zoom == 3")
    page.keyboard.press("0")
    seen.until("document.getElementById('map-frame').dataset.zoom == 1")


def test_the_map_follows_the_pointer_when_dragged(visit):
    seen = visit()
    seen.page.click("#zoom-in")
    before = seen.place(4)
    seen.page.mouse.move(*seen.corner(0.5, 0.5))
    seen.page.mouse.down()
    seen.page.mouse.move(*seen.corner(0.55, 0.5), steps=4)
    seen.page.mouse.up()
    after = seen.place(4)
    assert after[0] - before[0] == pytest.approx(0.05 * 1177, abs=3)


def test_a_page_that_scrolls_is_not_caught_by_the_map(visit):
    seen = visit()
    seen.page.mouse.move(640, 20)
    seen.page.mouse.wheel(0, 100)
    seen.until("scrollY > 0")
    assert seen.zoom() == 1


def test_hover_shows_the_image(visit):
    seen = visit()
    page = seen.page
    page.mouse.move(*seen.corner(0.5, 0.5))
    assert page.locator("#map-card").is_hidden()
    page.mouse.move(*seen.place(3))
    page.wait_for_selector("#map-card:not([hidden])")
    assert page.inner_text(".map-card-name") == "<script>alert(1)<br>.png"
    assert page.get_attribute("#map-card img", "src").startswith("data:image/webp;base64,")
    assert page.evaluate("document.querySelector('#map-card img').naturalWidth") == 64


def test_click_opens_and_the_arrows_lead_on(visit):
    seen = visit()
    page = seen.page
    page.mouse.click(*seen.place(4))
    page.wait_for_selector("#lightbox[open]")
    assert page.inner_text(".lightbox-name") == "javascript:alert(1).png"
    assert page.inner_text(".lightbox-count") == "2 of 30"
    assert page.get_attribute("a.lightbox-button", "href").endswith(
        "/photos/javascript%3Aalert(1).png"
    )
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".lightbox-count") == "3 of 30"
    assert page.inner_text(".lightbox-name") == "100 %20.png"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text(".lightbox-count") == "1 of 30"
    assert page.is_disabled(".lightbox-previous")
    page.keyboard.press("Escape")
    page.wait_for_selector("#lightbox", state="hidden")


def test_links_lead_to_the_files_whatever_their_names(visit, coloured_run):
    seen = visit()
    for row, path in enumerate(coloured_run.paths()):
        address = seen.page.evaluate(f"new URL(report.link({row}), location).href")
        assert address.startswith("file:///")
        found = os.fsdecode(unquote_to_bytes(address.removeprefix("file://")))
        assert os.path.samefile(found, path)


def test_lasso_selects_and_copies_the_list(visit, coloured_run):
    seen = visit(permissions=["clipboard-read", "clipboard-write"])
    page = seen.page
    page.click("[data-tool=lasso]")
    page.mouse.move(*seen.corner(0.01, 0.01))
    page.mouse.down()
    for corner in ((0.45, 0.01), (0.45, 0.4), (0.01, 0.4), (0.01, 0.02)):
        page.mouse.move(*seen.corner(*corner), steps=5)
    page.mouse.up()
    assert page.inner_text("#selection-count") == "30 images selected"
    page.click("#selection-copy")
    seen.until("document.getElementById('selection-copy').textContent === 'Copied'")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    paths = [str(path) for path in coloured_run.paths()]
    assert len(lines) == 30
    assert {paths[9], paths[12]} <= set(lines)
    assert any(line.endswith("undecodable \\xe9\\xff.png") for line in lines)
    page.keyboard.press("Escape")
    assert page.locator("#selection").is_hidden()


def test_a_box_selects_too(visit):
    seen = visit()
    page = seen.page
    page.click("[data-tool=box]")
    page.mouse.move(*seen.corner(0.3, 0.6))
    page.mouse.down()
    page.mouse.move(*seen.corner(0.7, 0.99), steps=5)
    page.mouse.up()
    assert page.inner_text("#selection-count") == "30 images selected"
    assert page.locator("#selection-strip .tile").count() == 30
    page.click("#selection-clear")
    assert page.locator("#selection").is_hidden()


def test_slash_searches_names_words_and_files(visit):
    seen = visit()
    page = seen.page
    page.keyboard.press("/")
    page.keyboard.type("OCEAN")
    seen.until("document.getElementById('search-status').textContent !== ''")
    assert page.inner_text("#search-status") == "Found: 1 cluster and 0 file names"
    assert [box.get_attribute("id") for box in page.locator(".cluster:visible").all()] == [
        "cluster-2"
    ]
    page.fill("#search", "<SCRIPT>alert(1)")
    page.wait_for_selector("#found-strip .tile")
    assert page.locator("#found-strip .tile").count() == 1
    assert "0 clusters and 1 file name" in page.inner_text("#search-status")
    page.keyboard.press("Escape")
    seen.until("document.getElementById('search-status').textContent === ''")
    assert page.locator(".cluster:visible").count() == 3


def test_what_is_not_found_is_pale_on_the_map(visit):
    seen = visit()
    seen.page.fill("#search", "rose")
    seen.until("document.getElementById('search-status').textContent !== ''")
    seen.page.wait_for_timeout(150)
    pixels = np.asarray(seen.canvas()).reshape(-1, 3)
    red, green = (np.array(seen.page.evaluate(f"colours.of({n})")) for n in (0, 1))
    assert (np.abs(pixels - red).max(axis=1) < 12).sum() > 100
    assert (np.abs(pixels - green).max(axis=1) < 12).sum() == 0


@pytest.mark.parametrize(
    ("order", "expected"),
    [("name", [1, 2, 0]), ("cohesion", [1, 2, 0]), ("loose", [0, 2, 1]), ("size", [0, 1, 2])],
)
def test_clusters_can_be_sorted(visit, order, expected):
    seen = visit()
    seen.page.select_option("#sort", order)
    for kind, attribute in ((".cluster", "data-cluster"), ("[data-cover]", "data-cover")):
        found = [int(one.get_attribute(attribute)) for one in seen.page.locator(kind).all()]
        assert found == expected


def test_all_images_of_a_cluster_on_demand(visit):
    seen = visit()
    button = seen.page.locator("[data-all='1']")
    button.click()
    assert seen.page.locator("#cluster-1-all .tile").count() == 30
    assert button.get_attribute("aria-expanded") == "true"
    widths = seen.page.evaluate(
        "Promise.all([...document.querySelectorAll('#cluster-1-all img')].map("
        "async (i) => { i.loading = 'eager'; await i.decode(); return i.naturalWidth; }))"
    )
    assert widths == [64] * 30
    button.click()
    assert seen.page.locator("#cluster-1-all").is_hidden()


def test_new_names_make_the_round_trip(visit, coloured_run, tmp_path):
    seen = visit()
    page = seen.page
    name = '<i>Roses</i> & "more" \N{ROSE}'
    page.click("#cluster-0-name [data-cluster-name]")
    page.fill("#cluster-0-name input", f"  {name} ")
    page.keyboard.press("Enter")
    page.click("[data-rename='2']")
    page.fill("#cluster-2-name input", "gone")
    page.keyboard.press("Escape")
    for place in page.locator("[data-cluster-name='0']").all():
        assert place.text_content() == name
    assert page.inner_text("#names-count") == "1 name changed"
    with page.expect_download() as download:
        page.click("#names-save")
    assert download.value.suggested_filename == "names.json"
    file = tmp_path / "names.json"
    download.value.save_as(file)
    assert json.loads(file.read_text())["format"] == 1
    names = read_names(file, coloured_run.manifest)
    assert names == {0: name}

    copy = shutil.copytree(coloured_run.directory, tmp_path / "run")
    write_names(copy, coloured_run.manifest, names)
    again = visit(write_report(open_run(copy)))
    assert again.page.inner_text("#cluster-0-name") == name
    again.page.click("[data-rename='1']")
    again.page.fill("#cluster-1-name input", "Greens")
    again.page.keyboard.press("Enter")
    with again.page.expect_download() as download:
        again.page.click("#names-save")
    download.value.save_as(file)
    assert read_names(file) == {0: name, 1: "Greens"}
    again.page.click("#names-undo")
    assert again.page.locator("#names-bar").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(visit, scheme):
    seen = visit(color_scheme=scheme)

    def brightness() -> tuple[float, float]:
        colour = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        page = np.mean([int(part) for part in colour.strip("rgb()").split(",")])
        return float(page), float(np.median(np.asarray(seen.canvas())))

    first = brightness()
    assert all(value > 200 for value in first) if scheme == "light" else max(first) < 60
    seen.page.click("#theme")
    seen.page.wait_for_timeout(100)
    second = brightness()
    assert max(second) < 60 if scheme == "light" else all(value > 200 for value in second)
    seen.page.reload()
    seen.until("document.getElementById('map-frame')?.dataset.zoom !== undefined")
    assert brightness() == second


@pytest.mark.parametrize("width", [320, 390, 1280, 2560])
def test_nothing_is_wider_than_the_screen(visit, width):
    seen = visit(viewport={"width": width, "height": 800}, has_touch=width < 500)
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    seen.page.locator("#cluster-0 .tile").first.click()
    seen.page.wait_for_selector("#lightbox[open]")
    box = seen.page.locator("#lightbox").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width


def test_nothing_jumps_while_the_page_appears(visit):
    seen = visit()
    shift = seen.page.evaluate(
        "new Promise((resolve) => { new PerformanceObserver((list) => resolve("
        "list.getEntries().reduce((sum, entry) => sum + entry.value, 0))).observe("
        "{ type: 'layout-shift', buffered: true }); setTimeout(() => resolve(0), 500); })"
    )
    assert shift < 0.01


def test_hostile_names_are_text(visit):
    seen = visit()
    page = seen.page
    assert page.locator("main b, main i, main u").count() == 0
    assert page.evaluate("document.querySelectorAll('script:not([type])').length") > 5
    for number, name in enumerate(NAMES):
        shown = page.text_content(f"#cluster-{number}-name [data-cluster-name]")
        assert shown == name
    titles = {tile.get_attribute("title") for tile in page.locator(".exemplars .tile").all()}
    assert {"two\\nlines.png", "<script>alert(1)<br>.png", 'double"quote.png'} <= titles


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_nothing_is_in_the_way_of_anybody(visit, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    seen = visit(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)

    def serious() -> list[str]:
        violations = Axe().run(seen.page).response["violations"]
        return [
            f"{one['id']}: {one['nodes'][0]['html']} {one['nodes'][0].get('failureSummary')}"
            for one in violations
            if one["impact"] in ("serious", "critical")
        ]

    seen.page.evaluate("selection.set([1, 2, 3]), rename.set(1, 'x'), search.input.value = 'o'")
    seen.page.dispatch_event("#search", "input")
    seen.until("document.getElementById('search-status').textContent !== ''")
    assert serious() == []
    seen.page.evaluate("lightbox.open([0, 1, 2], 1)")
    assert serious() == []


def test_many_images_are_loaded_from_beside_the_page(visit, coloured_run, tmp_path, monkeypatch):
    monkeypatch.setattr("nouncut.report.pictures.MAX_INLINE", 20)
    copy = open_run(shutil.copytree(coloured_run.directory, tmp_path / "a run, 100 %"))
    seen = visit(write_report(copy))
    seen.page.click("[data-all='1']")
    beside = "#cluster-1-all img[src*='report-thumbnails/160/']"
    seen.until(f"document.querySelector({beside!r})?.naturalWidth === 64")
    shutil.rmtree(copy.directory / "report-thumbnails")
    alone = visit(copy.report)
    assert alone.page.evaluate("document.querySelector('.exemplars img').naturalWidth") == 64


@pytest.mark.parametrize("n_clusters", [0, 1, 2, 1000])
def test_any_number_of_clusters(visit, write_run, tmp_path, n_clusters):
    paths = [tmp_path / "gone" / f"{number}.png" for number in range(n_clusters)]
    images = images_table(paths, hashes=[f"{number:040}" for number in range(n_clusters)])
    seen = visit(write_report(write_run(tmp_path / "run", images, list(range(n_clusters)))))
    assert seen.page.locator(".cluster").count() == n_clusters
    assert seen.page.locator("#map").count() == 0
    if n_clusters:
        seen.page.click("[data-all='0']")
        assert "the file is gone" in seen.page.inner_text("#cluster-0-all")
        seen.page.click("#cluster-0-all .tile")
        assert "the file is gone" in seen.page.inner_text(".lightbox-missing")


def test_features_without_pictures(visit, make_run, tmp_path):
    seen = visit(write_report(make_run(tmp_path / "run", source_kind="features")))
    page = seen.page
    page.mouse.move(*seen.place(17))
    page.wait_for_selector("#map-card:not([hidden])")
    # All of a cluster lie in one place.
    assert page.inner_text(".map-card-name") == "row 19"
    page.click("[data-all='2']")
    assert page.locator("#cluster-2-all li").count() == 4
    page.fill("#search", "row 17")
    seen.until("document.getElementById('search-status').textContent !== ''")
    assert page.inner_text("#found-strip") == "row 17"
    page.mouse.click(*seen.place(17))
    page.wait_for_selector("#lightbox[open]")
    assert "without pictures" in page.inner_text(".lightbox-missing")


def test_copies_and_one_image(visit, write_run, tmp_path):
    path = tmp_path / "one.png"
    Image.new("RGB", (64, 48), "red").save(path)
    for name, n_images in (("alone", 1), ("copies", 50)):
        images = images_table([path] * n_images, hashes=[content_hash(path)] * n_images)
        seen = visit(write_report(write_run(tmp_path / name, images, [0] * n_images)))
        seen.page.click("[data-all='0']")
        assert seen.page.locator("#cluster-0-all img").count() == n_images
        assert seen.report.stat().st_size < 200_000


def test_the_page_speaks_without_a_mouse(visit):
    seen = visit()
    page = seen.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the clusters"
    page.focus("#map-canvas")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#map-card:not([hidden])")
    page.keyboard.press("Enter")
    page.wait_for_selector("#lightbox[open]")
