"""The rest of the report in a real browser."""

from __future__ import annotations

import json
import os
import shutil
from urllib.parse import unquote_to_bytes

import pytest
from PIL import Image

from nouncut.images.hashing import content_hash
from nouncut.report.write import write_report
from nouncut.runs.editing import edit_run, plan_rename
from nouncut.runs.renames import read_names
from nouncut.runs.run import open_run
from nouncut.runs.tables import images_table


def test_links_reach_files_with_hostile_names(seen, coloured_run):
    for row, path in enumerate(coloured_run.paths()):
        address = seen.page.evaluate(f"new URL(report.link({row}), location).href")
        assert address.startswith("file:///")
        found = os.fsdecode(unquote_to_bytes(address.removeprefix("file://")))
        assert os.path.samefile(found, path)


def test_slash_searches_names_words_and_files(seen):
    page = seen.page
    page.keyboard.press("/")
    page.keyboard.type("OCEAN")
    seen.until("document.getElementById('search-status').textContent !== ''")
    assert page.inner_text("#search-status") == "Found: 1 group and 0 file names"
    assert [box.get_attribute("id") for box in page.locator(".cluster:visible").all()] == [
        "cluster-2"
    ]
    page.fill("#search", "<SCRIPT>alert(1)")
    page.wait_for_selector("#found-strip .tile")
    assert page.locator("#found-strip .tile").count() == 1
    assert "0 groups and 1 file name" in page.inner_text("#search-status")
    page.keyboard.press("Escape")
    seen.until("document.getElementById('search-status').textContent === ''")
    assert page.locator(".cluster:visible").count() == 3


@pytest.mark.parametrize(
    ("order", "expected"),
    [("name", [1, 2, 0]), ("cohesion", [1, 2, 0]), ("loose", [0, 2, 1]), ("size", [0, 1, 2])],
)
def test_clusters_can_be_sorted(seen, order, expected):
    seen.page.select_option("#sort", order)
    for kind, attribute in ((".cluster", "data-cluster"), ("[data-cover]", "data-cover")):
        found = [int(one.get_attribute(attribute)) for one in seen.page.locator(kind).all()]
        assert found == expected


def test_all_images_of_a_cluster(seen):
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


def test_new_names_survive_saving_and_reading(visit, coloured_run, tmp_path):
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
    edit_run(open_run(copy), plan_rename(names))
    again = visit(write_report(open_run(copy)))
    assert again.page.inner_text("#cluster-0-name") == name
    again.page.click("[data-rename='1']")
    again.page.fill("#cluster-1-name input", "Greens")
    again.page.keyboard.press("Enter")
    with again.page.expect_download() as download:
        again.page.click("#names-save")
    download.value.save_as(file)
    assert read_names(file, coloured_run.manifest) == {0: name, 1: "Greens"}
    again.page.click("#names-undo")
    assert again.page.locator("#names-bar").is_hidden()


@pytest.mark.parametrize(("has_touch", "widths"), [(True, (320, 390)), (False, (1280, 2560))])
def test_nothing_is_wider_than_the_screen(visit, has_touch, widths):
    seen = visit(viewport={"width": widths[0], "height": 800}, has_touch=has_touch)
    for width in widths:
        seen.page.set_viewport_size({"width": width, "height": 800})
        assert seen.page.evaluate("document.documentElement.scrollWidth") == width
        seen.page.locator("#cluster-0 .tile").first.click()
        seen.page.wait_for_selector("#lightbox[open]")
        box = seen.page.locator("#lightbox").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert seen.page.evaluate("document.documentElement.scrollWidth") == width
        seen.page.keyboard.press("Escape")
        seen.page.wait_for_selector("#lightbox", state="hidden")


def test_nothing_jumps_while_the_page_appears(visit):
    seen = visit()
    shift = seen.page.evaluate(
        "new Promise((resolve) => { new PerformanceObserver((list) => resolve("
        "list.getEntries().reduce((sum, entry) => sum + entry.value, 0))).observe("
        "{ type: 'layout-shift', buffered: true }); setTimeout(() => resolve(0), 500); })"
    )
    assert shift < 0.01


def test_hostile_names_are_text(seen, coloured_run):
    page = seen.page
    assert page.locator("main b, main i, main u").count() == 0
    assert page.evaluate("document.querySelectorAll('script:not([type])').length") > 5
    for number, name in enumerate(coloured_run.names):
        shown = page.text_content(f"#cluster-{number}-name [data-cluster-name]")
        assert shown == name
    titles = {tile.get_attribute("title") for tile in page.locator(".exemplars .tile").all()}
    assert {"two\\nlines.png", "<script>alert(1)<br>.png", 'double"quote.png'} <= titles


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_no_serious_accessibility_violations(visit, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    seen = visit(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)

    def serious(part: str | None = None) -> list[str]:
        violations = Axe().run(seen.page, part).response["violations"]
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
    assert serious("#lightbox") == []


def test_many_images_are_loaded_from_beside_the_page(visit, coloured_run, tmp_path, monkeypatch):
    monkeypatch.setattr("nouncut.report.shown_images.MAX_INLINE", 20)
    copy = open_run(shutil.copytree(coloured_run.directory, tmp_path / "a run, 100 %"))
    seen = visit(write_report(copy))
    seen.page.click("[data-all='1']")
    beside = "#cluster-1-all img[src*='report-thumbnails/160/']"
    seen.until(f"document.querySelector({beside!r})?.naturalWidth === 64")
    shutil.rmtree(copy.directory / "report-thumbnails")
    alone = visit(copy.report)
    assert alone.page.evaluate("document.querySelector('.exemplars img').naturalWidth") == 64
    alone.until_drawn()
    # The browser reports the images that the map misses; their dots stay.
    assert all("ERR_FILE_NOT_FOUND" in problem for problem in alone.problems)
    alone.problems.clear()


@pytest.mark.parametrize("n_clusters", [0, 1, 2, 200])
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


def test_copies_and_one_image(visit, write_run, tmp_path):
    path = tmp_path / "one.png"
    Image.new("RGB", (64, 48), "red").save(path)
    for name, n_images in (("alone", 1), ("copies", 50)):
        images = images_table([path] * n_images, hashes=[content_hash(path)] * n_images)
        seen = visit(write_report(write_run(tmp_path / name, images, [0] * n_images)))
        seen.page.click("[data-all='0']")
        assert seen.page.locator("#cluster-0-all img").count() == n_images
        assert seen.report.stat().st_size < 200_000


def test_the_dialog_says_why_an_image_is_in_its_cluster(visit, explained_run):
    page = visit(explained_run.report).page
    box = page.locator(".lightbox-reasons")
    for row in (0, 3):
        page.evaluate(f"lightbox.open([0, 3], {[0, 3].index(row)})")
        expected = explained_run.explain(row)
        rows = [int(tile.get_attribute("data-row")) for tile in box.locator(".tile").all()]
        both = (expected.chosen, expected.runner_up)
        assert rows == [image.row for reasons in both for image in reasons.nearest]
        shown = box.locator(".reasons-words").all_text_contents()
        assert shown == [f"Words: {', '.join(part.words)}" for part in both if part.words]
        titles = box.locator(".reasons-title").all_text_contents()
        assert titles[0] == f"Most alike in {expected.chosen.name}"
        assert titles[1] == f"Most alike in {expected.runner_up.name}, the second choice"
        assert box.locator("b, i, script").count() == 0
        decoded = (
            "(images) => Promise.all(images.map(async (i) => (await i.decode(), i.naturalWidth)))"
        )
        assert box.locator("img").evaluate_all(decoded) == [64] * 8


def test_similar_images_lead_on(visit, explained_run):
    page = visit(explained_run.report).page
    nearest = [image.row for image in explained_run.explain(0).chosen.nearest]
    page.evaluate("lightbox.open([0], 0)")
    page.locator(".lightbox-reasons .tile").first.click()
    name = "document.querySelector('.lightbox-name').textContent === report.fileName({})"
    assert page.evaluate(name.format(nearest[0]))
    page.keyboard.press("ArrowRight")
    assert page.evaluate(name.format(nearest[1]))


def test_an_unlikely_second_choice_is_not_explained(visit, explained_run):
    page = visit(explained_run.report).page
    page.evaluate("lightbox.open([1], 0)")
    assert page.locator(".reasons-title").count() == 1


def test_a_run_without_features_explains_nothing(seen):
    seen.page.evaluate("lightbox.open([0], 0)")
    assert seen.page.locator(".lightbox-reasons").text_content() == ""


def test_a_page_of_edited_groups(visit, coloured_run, tmp_path):
    run = open_run(shutil.copytree(coloured_run.directory, tmp_path / "run"))
    run.merge([0, 1])
    run.rename(2, "Lakes")
    run.move([3, 4], "new")
    run.set_aside(5)
    seen = visit(write_report(run))
    page = seen.page
    shown = [int(one.get_attribute("data-cluster")) for one in page.locator(".cluster").all()]
    assert shown == run.clusters["cluster"].to_pylist() == [0, 2, 3]
    page.select_option("#sort", "name")
    page.select_option("#sort", "size")
    assert [
        int(one.get_attribute("data-cluster")) for one in page.locator(".cluster").all()
    ] == shown
    assert "1 set aside" in page.inner_text(".lead >> nth=0")
    page.click("[data-all='3']")
    assert page.locator("#cluster-3-all .tile").count() == 2
    page.fill("#search", "lakes")
    seen.until("document.getElementById('search-status').textContent !== ''")
    assert page.inner_text("#search-status").startswith("Found: 1 group ")
    # Kinds of a thing are found by its word.
    for text, n_clusters in (("waters", 1), ("atewater", 0), ("body of water", 1)):
        page.fill("#search", text)
        expected = f"Found: {n_clusters} group"
        seen.until(f"document.getElementById('search-status').textContent.startsWith('{expected}')")
    page.fill("#search", "set aside")
    seen.until("document.getElementById('search-status').textContent.includes('0 groups')")
    page.fill("#search", "")
    page.evaluate("lightbox.open([5, 3], 0)")
    assert "none: set aside" in page.inner_text(".lightbox-facts")
    page.keyboard.press("ArrowRight")
    assert "new" in page.inner_text(".lightbox-facts")
    page.keyboard.press("Escape")
    assert len(set(page.evaluate("colours.of(report.cluster[5])"))) == 1  # grey
    page.mouse.move(*seen.dot(5))
    seen.until_drawn()
