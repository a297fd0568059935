from __future__ import annotations

import os
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from scipy.sparse import csr_array

from nouncut.compute.rows import label_matrix
from nouncut.images.hashing import content_hash
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.membership import Membership
from nouncut.report.write import write_report
from nouncut.runs.contents import assignments_table, clusters_table
from nouncut.runs.grouping import Groups
from nouncut.runs.run import Run
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
from nouncut.runs.writer import RunContents, RunWriter
from nouncut.words.cluster_names import ClusterName

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

VOID = {"meta", "img", "input", "br", "link"}


class Document(HTMLParser):
    """A page as elements, with every tag closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if not self._open or self._open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [a for _, a in self.elements if name in (a.get("class") or "").split()]


@pytest.fixture
def read_page() -> Callable[[Path], Document]:
    return lambda path: Document(path.read_text(encoding="utf-8"))


# Runs


@pytest.fixture(scope="session")
def write_run() -> Callable[..., Run]:
    """Return a writer of runs from images and the cluster of each, with the product's tables."""

    def write(
        directory: Path,
        images: pa.Table,
        labels: Sequence[int],
        manifest: dict | None = None,
        arrays: dict[str, np.ndarray] | None = None,
        **chosen: Any,
    ) -> Run:
        assignments, clusters = ASSIGNMENTS_SCHEMA.empty_table(), CLUSTERS_SCHEMA.empty_table()
        if len(labels):
            groups = chosen_groups(np.asarray(labels), **chosen)
            assignments = assignments_table(images["path"][: len(labels)].to_pylist(), groups)
            # Without hashes: the page itself must find the copies among exemplars.
            clusters = clusters_table(groups)
        contents = RunContents(
            manifest={"source": ["/photos"], "source_kind": "images"} | (manifest or {}),
            assignments=assignments,
            clusters=clusters,
            images=images,
            arrays=arrays or {},
        )
        with RunWriter(directory) as writer:
            return writer.finish(contents)

    return write


def chosen_groups(
    labels: np.ndarray,
    *,
    graph: csr_array | None = None,
    names: list[ClusterName] | None = None,
    confidence: Sequence[float] | None = None,
    second_confidence: Sequence[float] | None = None,
    outliers: Sequence[int] = (),
) -> Groups:
    """Return a clustering as `group_images` would, with chosen labels; later rows are less sure."""
    n_clusters = int(labels.max()) + 1
    members = label_matrix(labels)
    model = NTKSpectralClustering(n_clusters)
    model.labels_, model.graph_ = labels, members @ members.T if graph is None else graph
    sure = np.linspace(0.6, 0.5, len(labels)) if confidence is None else np.asarray(confidence)
    rest = 1 - sure if second_confidence is None else np.asarray(second_confidence)
    second = (labels + 1) % n_clusters if n_clusters > 1 else np.full_like(labels, -1)
    return Groups(
        model=model,
        count=None,
        nouns=None,
        names=names or [ClusterName(f"cluster {c + 1}", (), "", 0.0) for c in range(n_clusters)],
        membership=Membership(labels, sure, second, rest),
        outliers=np.asarray(outliers, dtype=np.intp),
    )


HOSTILE_FILES = (
    'double"quote.png',
    "two\nlines.png",
    "kitten \N{CAT FACE}.png",
    "<script>alert(1)<br>.png",
    "javascript:alert(1).png",
    "&amp;{{ 7 * 7 }}.png",
    "undecodable \udce9\udcff.png",
    "100 %20.png",
)
HOSTILE_NAMES = (
    ClusterName("red <b>things</b>", ("rose",), "a <colour>", 0.0),
    ClusterName("</script><script>alert('x')</script>", (), "", 0.0),
    ClusterName("blue\n\N{SNAKE} 'sea'", ("ocean",), "the sea", 0.0),
)
N_COLOURED = 90


@pytest.fixture(scope="session")
def coloured_run(tmp_path_factory, write_run) -> Run:
    """Return a run with a report: three clusters far apart on the map, with hostile names."""
    folder = tmp_path_factory.mktemp("coloured")
    rng = np.random.default_rng(0)
    labels = np.arange(N_COLOURED) % 3
    paths = [_draw(folder / "photos", row, rng) for row in range(N_COLOURED)]
    centers = np.array([[0.1, 0.1], [0.9, 0.1], [0.5, 0.9]])
    layout = centers[labels] + rng.uniform(-0.08, 0.08, (N_COLOURED, 2))
    # The first cluster has the most links to others, the second the fewest.
    links = np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.1], [0.4, 0.1, 1.0]])
    run = write_run(
        folder / "run",
        images_table(paths, hashes=[content_hash(path) for path in paths]),
        labels,
        {
            "source": [str(folder / "photos")],
            "model": {"name": "mini", "embedded": True},
            "nouns": {"words": ["sea", "<rose>"]},
        },
        {"layout": layout.astype(np.float32)},
        graph=csr_array(links[labels][:, labels]),
        names=list(HOSTILE_NAMES),
        confidence=np.linspace(1, 0.5, N_COLOURED),
        outliers=range(N_COLOURED - 3, N_COLOURED),
    )
    write_report(run)
    return run


N_CROWD = 3000


@pytest.fixture(scope="session")
def crowd_run(tmp_path_factory, write_run) -> Run:
    """Return a run with a report of many rows: sixteen clusters in three groups.

    Two groups are in the upper corners of the map. The clusters of the third are scattered below.
    """
    rng = np.random.default_rng(2)
    labels = np.sort(np.arange(N_CROWD) % 16)
    groups = np.repeat([0, 1, 2], [6, 6, 4])
    corners = np.array([[0.15, 0.2], [0.85, 0.2]])
    near = corners[groups[:12]] + rng.uniform(-0.12, 0.12, (12, 2))
    centers = np.concatenate([near, [[0.05, 0.9], [0.35, 0.9], [0.65, 0.9], [0.95, 0.9]]])
    layout = centers[labels] + rng.normal(0, 0.015, (N_CROWD, 2))
    names = [f"{letter} things" for letter in "abcdefghijklmnop"]
    run = write_run(
        tmp_path_factory.mktemp("crowd") / "run",
        images_table([f"row {row}" for row in range(N_CROWD)]),
        labels,
        {
            "source_kind": "features",
            "tree": {"sizes": np.bincount(labels).tolist(), "levels": [groups.tolist()]},
        },
        {"layout": layout.astype(np.float32)},
        names=[ClusterName(name, (), "", 0.0) for name in names],
        confidence=rng.uniform(0.3, 1, N_CROWD),
    )
    write_report(run)
    return run


@pytest.fixture(scope="session")
def explained_run(tmp_path_factory, write_run) -> Run:
    """Return a run with a report that says why: two clusters, words and file names that bite."""
    folder = tmp_path_factory.mktemp("explained")
    rng = np.random.default_rng(1)
    labels = np.arange(20) % 2
    paths = [_draw(folder / "photos", row, rng) for row in range(20)]
    features = np.eye(2, 4)[labels] + rng.normal(scale=0.1, size=(20, 4))
    run = write_run(
        folder / "run",
        images_table(paths, hashes=[content_hash(path) for path in paths]),
        labels,
        {"nouns": {"words": ["</script><b>red</b>", "<i>green</i>", "{{ 7 * 7 }}"]}},
        {
            "features": features.astype(np.float32),
            "semantic": features.astype(np.float32),
            "model_noun_features": np.eye(3, 4, dtype=np.float32)[None],
        },
        names=list(HOSTILE_NAMES[:2]),
        second_confidence=np.where(np.arange(20) == 1, 0.001, 0.3),
    )
    write_report(run)
    return run


def _draw(photos: Path, row: int, rng: np.random.Generator) -> Path:
    photos.mkdir(exist_ok=True)
    pixels = rng.integers(0, 60, (48, 64, 3), dtype=np.uint8)
    pixels[..., row % 3] += 190
    path = photos / (HOSTILE_FILES[row] if row < len(HOSTILE_FILES) else f"{row}.png")
    Image.fromarray(pixels).save(os.fspath(path), "PNG")
    return path


# Browsers

# What a reader would do to undo everything that the tests of a shared page do.
RESET = """() => {
  document.querySelector("dialog[open]")?.close();
  map.cancel();
  search.clear();
  for (const button of document.querySelectorAll("[data-all][aria-expanded=true]")) button.click();
  document.getElementById("sort").value = "size";
  gallery.sort("size");
  document.getElementById("zoom-fit").click();
  document.activeElement.blur();
  scrollTo({ top: 0, behavior: "instant" });
}"""


class Visit:
    """An open page, with its requests and complaints."""

    def __init__(self, page: Page, report: Path) -> None:
        self.page, self.report = page, report
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(60_000)
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(report.as_uri())
        self.until("document.readyState === 'complete'")

    def until(self, expression: str, seconds: float = 60) -> None:
        """Wait; Playwright's own function needs a page that runs strings as scripts."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, expression
            self.page.wait_for_timeout(20)

    def until_drawn(self) -> None:
        """Wait for the next frames, in which the map draws what has changed."""
        frames = "new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))"
        self.page.evaluate(frames)

    def reset(self) -> None:
        self.page.mouse.move(0, 0)
        self.page.evaluate(RESET)
        self.until_drawn()

    def check(self) -> None:
        """Check that nothing went wrong and nothing was loaded from elsewhere."""
        assert self.problems == []
        beside = f"{self.report.parent.as_uri()}/report-thumbnails/"
        for url in self.requests:
            assert url == self.report.as_uri() or url.startswith(("data:", "blob:", beside))

    def canvas(self) -> np.ndarray:
        """Return the pixels of the map, of shape (height, width, 3)."""
        address = self.page.evaluate("document.getElementById('map-canvas').toDataURL()")
        with Image.open(BytesIO(b64decode(address.split(",")[1]))) as image:
            return np.asarray(image.convert("RGB"))

    def zoom(self) -> float:
        return float(self.page.get_attribute("#map-frame", "data-zoom"))

    def dot(self, row: int) -> tuple[float, float]:
        """Return where the dot of a row is on the screen."""
        self.page.locator("#map-canvas").scroll_into_view_if_needed()
        x, y = self.page.evaluate(f"points.position(camera.view(), {row})")
        box = self.page.locator("#map-canvas").bounding_box()
        return box["x"] + x, box["y"] + y

    def on_map(self, x: float, y: float) -> tuple[float, float]:
        """Return a screen position within the map, given in shares of its size."""
        box = self.page.locator("#map-canvas").bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]


@pytest.fixture(scope="module")
def desktop(browser) -> BrowserContext:
    return browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-US")


@pytest.fixture(scope="module")
def shared_visit(desktop, coloured_run) -> Visit:
    return Visit(desktop.new_page(), coloured_run.report)


@pytest.fixture(scope="module")
def crowd_visit(desktop, crowd_run) -> Visit:
    return Visit(desktop.new_page(), crowd_run.report)


@pytest.fixture
def seen(shared_visit) -> Iterator[Visit]:
    """Open the report of the coloured run, in a page that the tests of a module share."""
    shared_visit.page.bring_to_front()
    shared_visit.reset()
    yield shared_visit
    shared_visit.check()


@pytest.fixture
def visit(browser, desktop, coloured_run) -> Iterator[Callable[..., Visit]]:
    """Return an opener of fresh pages; options make a browser context of its own."""
    visits: list[Visit] = []
    contexts = []

    def go(report: Path = coloured_run.report, **options) -> Visit:
        context = desktop
        if options:
            options = {"viewport": {"width": 1280, "height": 800}, "locale": "en-US"} | options
            context = browser.new_context(**options)
            contexts.append(context)
        visits.append(Visit(context.new_page(), report))
        return visits[-1]

    yield go
    for one in visits:
        one.check()
        one.page.close()
    for context in contexts:
        context.close()
