"""The explorer in the reader's language."""

from __future__ import annotations

import pytest


@pytest.fixture
def page(browser, serve, make_run, tmp_path):
    """Open the explorer of a small run in a German browser."""
    context = browser.new_context(locale="de-DE", viewport={"width": 1280, "height": 800})
    with serve(make_run(tmp_path / "run", photos=tmp_path / "photos")) as served:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(served.access.address)
        page.wait_for_selector("#tree [data-cluster]", state="attached")
        page.wait_for_selector("#place-title:has-text('Alle Bilder')")
        yield page
        context.close()


def test_a_german_reader_explores_in_german(page):
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.text_content("#place-about") == "24 Bilder"
    assert page.get_attribute("#search", "placeholder").startswith("Suche")
    assert page.get_attribute("#map-canvas", "aria-label").startswith("Karte, 24 Bilder")
    assert "Nichts rückgängig zu machen" in page.get_attribute("#undo", "title")
    page.evaluate("selection.set([1, 2])")
    assert page.text_content("#move-chosen").startswith("2 verschieben")
    page.evaluate("edits.setAside([1, 2])")
    page.wait_for_selector("#toast-text:has-text('2 Bilder beiseitelegen.')")
    # The names of groups are what they are, whatever they look like.
    page.evaluate("edits.rename(0, '<b>to</b> to 7')")
    page.wait_for_selector("#toast-text:has-text('umbenennen.')")
    assert page.locator("#toast b").count() == 0
    assert "<b>to</b> to 7" in page.text_content("#toast-text")
    page.evaluate("edits.undo()")
    page.wait_for_selector("#toast-text:has-text('Rückgängig: ')")
    page.click("#show-history")
    assert "rückgängig gemacht" in page.text_content("#past-list")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.wait_for_selector("#exporter-do:has-text('24 Bilder exportieren')")
    assert "Tabelle" in page.text_content("#exporter-kind")
