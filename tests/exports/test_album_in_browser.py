"""The album in a real browser, opened from the disk."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nouncut.exports.registry import export_run

LOADED = "[...document.images].every((one) => !one.checkVisibility() || one.naturalWidth > 0)"


@pytest.fixture
def album(shared_run, tmp_path) -> Path:
    return export_run(shared_run, "album", tmp_path / "album", title="Our <b>trip</b>").path


@pytest.fixture
def visit(browser, album):
    """Return an opener of the first page; whatever the page complains about fails the test."""
    complaints: list[str] = []

    def open_page(width=1280, **options):
        viewport = {"width": width, "height": 780}
        page = browser.new_context(viewport=viewport, **options).new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on(
            "request",
            lambda one: one.url.startswith(album.as_uri()) or complaints.append(one.url),
        )
        page.goto((album / "index.html").as_uri())
        return page

    yield open_page
    assert complaints == []


def wait_for_pictures(page):
    """Poll from here: the page's own policy forbids that a script of ours polls in it."""
    deadline = time.monotonic() + 20
    while not page.evaluate(LOADED):
        assert time.monotonic() < deadline
        page.wait_for_timeout(50)


@pytest.mark.parametrize("scripts", [True, False])
def test_from_the_covers_to_a_picture_and_back(visit, shared_run, scripts):
    page = visit(java_script_enabled=scripts)
    assert page.text_content("h1") == "Our <b>trip</b>"
    assert page.locator(".covers li").count() == 3
    page.click(".covers a >> nth=1")
    n_images = int((shared_run.labels == 1).sum())
    assert page.text_content("h1") == shared_run.names[1]
    assert page.locator(".photos li").count() == n_images
    page.click(".photos a >> nth=0")
    assert page.locator(".view:visible").count() == 1
    page.click(".view:target .next")
    assert page.text_content(".view:target .count") == f"2 of {n_images}"
    page.click(".view:target .previous")
    page.click(".view:target .previous")
    assert page.text_content(".view:target .count") == f"{n_images} of {n_images}"
    page.click(".view:target .close")
    assert page.locator(".view:visible").count() == 0
    page.click(".around a >> nth=1")
    assert page.text_content("h1") == shared_run.names[2]
    page.click(".head nav a")
    assert page.locator(".covers").count() == 1


def test_keys_and_all_pictures(visit):
    page = visit()
    wait_for_pictures(page)
    page.click(".covers a >> nth=0")
    wait_for_pictures(page)
    page.click(".photos a >> nth=3")
    page.keyboard.press("ArrowRight")
    assert page.text_content(".view:target .count") == "5 of 12"
    page.keyboard.press("ArrowLeft")
    wait_for_pictures(page)
    page.keyboard.press("Escape")
    assert page.locator(".view:visible").count() == 0
    page.go_back()
    page.go_back()
    assert page.locator(".covers").count() == 1


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_it_fits_and_has_no_serious_accessibility_violations(visit, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(width, color_scheme=scheme, bypass_csp=True)
    for step in (None, ".covers a >> nth=0", ".photos a >> nth=0"):
        if step:
            page.click(step)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        violations = Axe().run(page).response["violations"]
        assert [one for one in violations if one["impact"] in ("serious", "critical")] == []
