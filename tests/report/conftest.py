from __future__ import annotations

from html.parser import HTMLParser

import pyarrow as pa
import pytest

from nouncut.runs.run import Run
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA
from nouncut.runs.writer import RunContents, RunWriter

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
def read_page():
    return lambda path: Document(path.read_text(encoding="utf-8"))


@pytest.fixture
def write_run():
    """Return a writer of runs from images and the cluster of each."""

    def write(
        directory, images: pa.Table, labels: list[int], manifest: dict | None = None, **columns
    ) -> Run:
        n_clusters = max(labels, default=-1) + 1
        names = [f"cluster {number + 1}" for number in range(n_clusters)]
        second = [(label + 1) % n_clusters if n_clusters > 1 else None for label in labels]
        members: list[list[int]] = [[] for _ in names]
        for row, label in enumerate(labels):
            members[label].append(row)
        assignments = {
            "path": images["path"].slice(0, len(labels)),
            "cluster": labels,
            "name": [names[label] for label in labels],
            "confidence": [0.6] * len(labels),
            "second_cluster": second,
            "second_name": [None if number is None else names[number] for number in second],
            "second_confidence": [None if number is None else 0.4 for number in second],
            "outlier": [False] * len(labels),
        }
        clusters = {
            "cluster": range(n_clusters),
            "name": names,
            "more_words": [[]] * n_clusters,
            "gloss": [""] * n_clusters,
            "size": [len(rows) for rows in members],
            "cohesion": [1.0] * n_clusters,
            "exemplars": [rows[:12] for rows in members],
            "borderline": [rows[::-1][:12] for rows in members],
        }
        assignments |= {key: columns[key] for key in assignments.keys() & columns.keys()}
        clusters |= {key: columns[key] for key in clusters.keys() & columns.keys()}
        contents = RunContents(
            manifest={"source": ["/photos"], "source_kind": "images"} | (manifest or {}),
            assignments=pa.table(assignments, schema=ASSIGNMENTS_SCHEMA),
            clusters=pa.table(clusters, schema=CLUSTERS_SCHEMA),
            images=images,
        )
        with RunWriter(directory) as writer:
            return writer.finish(contents)

    return write
