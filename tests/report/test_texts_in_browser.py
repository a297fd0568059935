"""The report in the reader's language."""

from __future__ import annotations

import re

from nouncut.report.said import catalogues

# All that can be read or heard, as pieces of text.
READ_OR_HEARD = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (!parentElement.closest("script, noscript")) found.push(data);
  }
  for (const name of ["aria-label", "title", "placeholder"]) {
    for (const node of document.querySelectorAll(`[${name}]`)) found.push(node.getAttribute(name));
  }
  return found.map((one) => one.trim());
}"""


def only_english() -> set[str]:
    """Return the texts without values that are English and nothing else."""
    english, german = catalogues()["en"], catalogues()["de"]
    others = {text for text in german.values() if isinstance(text, str)}
    return {text for text in english.values() if isinstance(text, str)} - others


def test_a_german_reader_sees_german(visit, coloured_run):
    seen = visit(locale="de-DE", timezone_id="Europe/Berlin")
    page = seen.page
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.evaluate("document.title") == "photos · nouncut"
    page.evaluate("selection.set([1]), rename.set(1, '<b>x</b>'), lightbox.open([0, 87], 1)")
    assert not only_english() & set(page.evaluate(READ_OR_HEARD))
    assert page.text_content(".lead >> nth=0").startswith("90 Bilder, 3 Gruppen, ")
    assert re.search(r"\d+\. [A-Z]\w+ \d{4} um \d\d:\d\d$", page.text_content(".overview time"))
    assert "die 1.000 Klassen von ImageNet" in page.text_content("#model")
    assert page.get_attribute("[data-rename='0']", "aria-label") == (
        f"{coloured_run.names[0]} umbenennen"
    )
    assert page.text_content("#names-count") == "1 Name geändert"
    assert page.text_content("#selection-count") == "1 Bild ausgewählt"
    assert page.text_content("[data-all='0'] .all-verb") == "Alle 30 zeigen"
    assert page.text_content(".lightbox-count") == "2 von 2"
    assert "passt in keine Gruppe gut" in page.text_content(".lightbox-facts")
    assert page.locator("main b, main i").count() == 0
    page.keyboard.press("Escape")
    for width in (320, 390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_other_readers_see_english_with_their_numbers(visit, coloured_run):
    seen = visit(locale="fr-FR")
    assert seen.page.evaluate("document.documentElement.lang") == "en"
    assert only_english() & set(seen.page.evaluate(READ_OR_HEARD))

    def about_the_model() -> str:
        return seen.page.text_content("#model").replace("\N{NARROW NO-BREAK SPACE}", " ")

    assert "it knows the 1 000 classes of ImageNet" in about_the_model()
    # An address may choose the language; one that does not exist changes nothing.
    address = coloured_run.report.as_uri()
    seen.page.goto(f"{address}?lang=de")
    assert "die 1.000 Klassen von ImageNet" in about_the_model()
    seen.page.goto(f"{address}?lang=no such!")
    assert "it knows the 1 000 classes of ImageNet" in about_the_model()
    seen.requests = [url for url in seen.requests if "?lang=" not in url]


def test_without_scripts_the_page_is_english(browser, coloured_run):
    context = browser.new_context(locale="de-DE", java_script_enabled=False)
    page = context.new_page()
    page.goto(coloured_run.report.as_uri())
    assert page.inner_text(".lead >> nth=0").startswith("90 images in 3 groups, ")
    assert "it knows the 1,000 classes of ImageNet" in page.inner_text("#model")
    context.close()
