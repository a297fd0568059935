"""Runs in a notebook."""

import io
import re
from base64 import b64decode
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from PIL import Image

from nouncut.images.hashing import content_hash
from nouncut.runs.notebook import run_html


class Elements(HTMLParser):
    """Collects elements and text as a browser would see them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_names_are_shown_and_never_obeyed(small_run):
    found = Elements(small_run._repr_html_())
    assert found.open == []
    allowed = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "img", "span"}
    assert set(found.tags) <= allowed
    assert {name for name, _ in found.attributes} <= {"style", "title", "src", "alt"}
    assert set(small_run.names) <= set(found.texts)
    assert ("title", "<u>puppy</u>, hound") in found.attributes
    assert "24 images in 3 clusters" in found.texts


def test_pictures_are_small_and_inside(small_run):
    row = small_run.clusters["exemplars"][0].as_py()[0]
    first = small_run.paths()[row]
    Image.new("RGB", (3000, 1000), "red").save(first, "PNG")
    images = small_run.images.to_pylist()
    images[row]["hash"] = content_hash(first)
    images = pa.Table.from_pylist(images, schema=small_run.images.schema)
    html = run_html(small_run.manifest, small_run.clusters, images)
    sources = [value for name, value in Elements(html).attributes if name == "src"]
    assert len(sources) == 3 * 4
    pictures = [
        Image.open(io.BytesIO(b64decode(source.removeprefix("data:image/jpeg;base64,"))))
        for source in sources
    ]
    assert pictures[0].size == (96, 32)
    assert max(max(picture.size) for picture in pictures) == 96
    assert not re.search(r"https?:|file:|url\(", html)


@pytest.mark.parametrize("damage", ["gone", "broken"])
def test_pictures_that_cannot_be_opened_are_empty_boxes(small_run, damage):
    for path in small_run.paths()[:12]:
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(b"\x89PNG\r\n\x1a\n...")
    found = Elements(small_run._repr_html_())
    assert found.tags.count("img") == 8
    assert found.tags.count("span") == 4


def test_many_clusters_are_cut_short(small_run):
    clusters = pa.concat_tables([small_run.clusters] * 11)
    html = run_html(small_run.manifest, clusters, small_run.images)
    found = Elements(html)
    assert found.tags.count("tr") == 1 + 20
    assert found.tags.count("img") == 20 * 4
    assert "and 13 more" in found.texts
    assert "more" not in small_run._repr_html_().replace("more_words", "")
