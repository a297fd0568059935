"""The map of the report in a real browser."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut.report.write import write_report


def test_the_map_draws_every_cluster_in_its_colour(seen):
    pixels = seen.canvas().reshape(-1, 3)
    for cluster in range(3):
        colour = seen.page.evaluate(f"colours.of({cluster})")
        assert (np.abs(pixels - np.array(colour)).max(axis=1) < 12).sum() > 100


def test_dots_are_where_the_map_says(visit):
    seen = visit()
    seen.page.evaluate("photos.draw = () => [], photos.typical = () => null, map.redraw()")
    seen.until_drawn()
    x, y = seen.page.evaluate("points.position(camera.view(), 5)")
    nearby = seen.canvas()[int(y) - 3 : int(y) + 4, int(x) - 3 : int(x) + 4]
    expected = np.array(seen.page.evaluate("colours.of(report.cluster[5])"))
    assert np.abs(nearby.reshape(-1, 3) - expected).max(axis=1).min() < 40


def test_zoom_by_wheel_buttons_keys_and_double_click(seen):
    page = seen.page
    middle = seen.on_map(0.5, 0.5)
    page.mouse.move(*seen.on_map(0.4, 0.4))
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


def test_the_map_follows_the_pointer_when_dragged(seen):
    seen.page.click("#zoom-in")
    before = seen.dot(4)
    seen.page.mouse.move(*seen.on_map(0.5, 0.5))
    seen.page.mouse.down()
    seen.page.mouse.move(*seen.on_map(0.55, 0.5), steps=4)
    seen.page.mouse.up()
    after = seen.dot(4)
    assert after[0] - before[0] == pytest.approx(0.05 * 1177, abs=3)


def test_scrolling_the_page_does_not_zoom_the_map(seen):
    seen.page.mouse.move(640, 20)
    seen.page.mouse.wheel(0, 100)
    seen.until("scrollY > 0")
    assert seen.zoom() == 1


def test_hover_shows_the_image(seen):
    page = seen.page
    page.mouse.move(*seen.on_map(0.5, 0.5))
    assert page.locator("#map-card").is_hidden()
    page.mouse.move(*seen.dot(3))
    page.wait_for_selector("#map-card:not([hidden])")
    assert page.inner_text(".map-card-name") == "<script>alert(1)<br>.png"
    assert page.get_attribute("#map-card img", "src").startswith("data:image/webp;base64,")
    assert page.evaluate("document.querySelector('#map-card img').naturalWidth") == 64


def test_click_opens_an_image_and_arrows_go_on(seen):
    page = seen.page
    page.mouse.click(*seen.dot(4))
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


def test_lasso_selects_and_copies_the_list(visit, coloured_run):
    seen = visit(permissions=["clipboard-read", "clipboard-write"])
    page = seen.page
    page.click("[data-tool=lasso]")
    page.mouse.move(*seen.on_map(0.01, 0.01))
    page.mouse.down()
    for corner in ((0.45, 0.01), (0.45, 0.4), (0.01, 0.4), (0.01, 0.02)):
        page.mouse.move(*seen.on_map(*corner), steps=5)
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


def test_a_box_selects_too(seen):
    page = seen.page
    page.click("[data-tool=box]")
    page.mouse.move(*seen.on_map(0.3, 0.6))
    page.mouse.down()
    page.mouse.move(*seen.on_map(0.7, 0.99), steps=5)
    page.mouse.up()
    assert page.inner_text("#selection-count") == "30 images selected"
    assert page.locator("#selection-strip .tile").count() == 30
    page.click("#selection-clear")
    assert page.locator("#selection").is_hidden()


def test_a_search_fades_all_other_dots(seen):
    seen.page.fill("#search", "rose")
    seen.until("document.getElementById('search-status').textContent !== ''")
    seen.until_drawn()
    pixels = seen.canvas().reshape(-1, 3)
    red, green = (np.array(seen.page.evaluate(f"colours.of({n})")) for n in (0, 1))
    assert (np.abs(pixels - red).max(axis=1) < 12).sum() > 100
    assert (np.abs(pixels - green).max(axis=1) < 12).sum() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(visit, scheme):
    seen = visit(color_scheme=scheme)

    def brightness() -> tuple[float, float]:
        colour = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        page = np.mean([int(part) for part in colour.strip("rgb()").split(",")])
        return float(page), float(np.median(seen.canvas()))

    first = brightness()
    assert all(value > 200 for value in first) if scheme == "light" else max(first) < 60
    seen.page.click("#theme")
    seen.until_drawn()
    second = brightness()
    assert max(second) < 60 if scheme == "light" else all(value > 200 for value in second)
    seen.page.reload()
    seen.until("document.getElementById('map-frame')?.dataset.zoom !== undefined")
    assert brightness() == second


def test_rows_of_features(visit, make_run, tmp_path):
    seen = visit(write_report(make_run(tmp_path / "run", source_kind="features")))
    page = seen.page
    page.mouse.move(*seen.dot(17))
    page.wait_for_selector("#map-card:not([hidden])")
    # All rows of a cluster share one position, and the last one wins.
    assert page.inner_text(".map-card-name") == "row 19"
    page.click("[data-all='2']")
    assert page.locator("#cluster-2-all li").count() == 4
    page.fill("#search", "row 17")
    seen.until("document.getElementById('search-status').textContent !== ''")
    assert page.inner_text("#found-strip") == "row 17"
    page.mouse.click(*seen.dot(17))
    page.wait_for_selector("#lightbox[open]")
    assert "without images" in page.inner_text(".lightbox-missing")


def test_the_map_works_with_the_keyboard(visit):
    seen = visit()
    page = seen.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the groups"
    page.focus("#map-canvas")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#map-card:not([hidden])")
    page.keyboard.press("Enter")
    page.wait_for_selector("#lightbox[open]")
