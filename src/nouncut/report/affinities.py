"""The affinity matrix of a run, its images sorted by cluster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.method.graphs import neighbor_graph, normalize_graph, symmetrize_graph
from nouncut.method.neighbors import kernel_neighbors
from nouncut.report.charts import GAP, HALF_WIDTH, WIDTH
from nouncut.report.drawing import Cells, Drawing, Line, Shape, Text
from nouncut.runs.run import Run

_MOST_CELLS = 240
# So many images of a larger collection tell what all of them would; they are compared with all.
_MOST_ROWS = 4000
_DEFAULT_NEIGHBORS = 30
_TOP = 30.0
# Marks at the ends of clusters, as long as they can be told apart.
_MARK = 5.0
_MOST_MARKS = 40
# The darkest cells; a few of them are darker than all others.
_DARKEST = 0.99


def draw_affinities(run: Run) -> tuple[Drawing, str] | None:
    """Draw who is linked with whom, with nouns and by looks alone."""
    if run.manifest["n_clusters"] < 2 or not run.has_array("graph_data"):
        return None
    labels = run.labels
    graphs = {"The graph that was cut": _shares(run.graph(), np.arange(len(labels)))}
    if run.manifest.get("prompts") and run.has_array("features"):
        graphs = {"With nouns": graphs.popitem()[1], "By looks alone": _visual_shares(run)}
    order = np.argsort(labels, kind="stable")
    panels = [(title, _binned(graph, order)) for title, graph in graphs.items()]
    kept = [_kept_within(graph, labels) for graph in graphs.values()]
    shapes = _panels(panels, kept, np.cumsum(np.bincount(labels))[:-1] / len(labels))
    side = _side(len(panels))
    return Drawing(WIDTH, _TOP + side + 2 * _MARK, tuple(shapes)), _sentence(kept)


def _visual_shares(run: Run) -> csr_array:
    """Return the links that images, or some of very many, would have without nouns."""
    features = unit_rows(np.asarray(run.array("features")))
    n = len(features)
    q = min(int(run.manifest.get("n_neighbors") or _DEFAULT_NEIGHBORS), n - 1)
    if n <= _MOST_ROWS:
        graph = symmetrize_graph(neighbor_graph(kernel_neighbors(features, [], q)[0], n))
        return _shares(normalize_graph(graph)[0], np.arange(n))
    rows = np.linspace(0, n - 1, _MOST_ROWS).astype(np.intp)
    # An image is its own nearest neighbour here, and left out afterwards.
    found = kernel_neighbors(features, [], q + 1, queries=(features[rows], []))[0]
    graph = neighbor_graph(found, n)
    entries = np.repeat(np.arange(len(rows)), np.diff(graph.indptr))
    graph.data[graph.indices == rows[entries]] = 0
    return _shares(graph, rows)


def _shares(graph: csr_array, rows: NDArray[np.intp]) -> csr_array:
    """Return a graph of all images in which those of some rows share out one among their links."""
    total = np.asarray(graph.sum(axis=1)).ravel()
    entries = np.repeat(np.arange(len(rows)), np.diff(graph.indptr))
    shares = graph.data / np.maximum(total[entries], np.finfo(np.float64).tiny)
    n = graph.shape[1]
    return csr_array((shares, (rows[entries], graph.indices)), shape=(n, n))


def _binned(graph: csr_array, order: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the mean share that images of every row of cells give to every column's."""
    n = len(order)
    n_cells = min(n, _MOST_CELLS)
    cell = np.empty(n, dtype=np.intp)
    cell[order] = np.arange(n) * n_cells // n
    members = csr_array((np.ones(n), cell, np.arange(n + 1)), shape=(n, n_cells))
    binned = (members.T @ (graph @ members)).toarray()
    given = np.maximum(binned.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(binned / given)


def _kept_within(graph: csr_array, labels: NDArray[np.intp]) -> float:
    """Return the share of links that stay within their cluster."""
    rows = np.repeat(np.arange(len(labels)), np.diff(graph.indptr))
    within = labels[rows] == labels[graph.indices]
    return float(graph.data[within].sum() / max(graph.data.sum(), np.finfo(np.float64).tiny))


def _panels(
    panels: list[tuple[str, NDArray[np.float64]]], kept: list[float], ends: NDArray[np.float64]
) -> list[Shape]:
    """Draw matrices on one scale, with marks where clusters end."""
    together = np.concatenate([matrix[matrix > 0] for _, matrix in panels])
    darkest = float(np.quantile(together, _DARKEST)) if len(together) else 1.0
    side = _side(len(panels))
    shapes: list[Shape] = []
    for number, (title, matrix) in enumerate(panels):
        left, right = (
            number * (HALF_WIDTH + GAP) + _MARK,
            number * (HALF_WIDTH + GAP) + side + _MARK,
        )
        # The root lets weak links show.
        strength = np.rint(255 * np.sqrt(np.minimum(matrix / darkest, 1))).astype(np.uint8)
        shapes += [
            Text(left, 14, title, "ink"),
            Text(right, 14, f"{kept[number]:.0%} within clusters", anchor="end", size=11),
            Cells(left, _TOP, side, strength, f"affinity-{number}"),
            _box(left, _TOP, side),
        ]
        if len(ends) <= _MOST_MARKS:
            bottom = _TOP + side
            for end in side * ends:
                shapes.append(Line(((left + end, bottom), (left + end, bottom + _MARK)), "quiet"))
                shapes.append(Line(((left - _MARK, _TOP + end), (left, _TOP + end)), "quiet"))
    return shapes


def _side(n_panels: int) -> float:
    return HALF_WIDTH - _MARK if n_panels > 1 else 320.0


def _box(left: float, top: float, side: float) -> Line:
    right, bottom = left + side, top + side
    return Line(((left, top), (right, top), (right, bottom), (left, bottom), (left, top)), "line")


def _sentence(kept: list[float]) -> str:
    text = (
        "Every row is an image and every column too, sorted by cluster, and dark cells are strong "
        "links: clean squares along the diagonal are clusters that hold together"
    )
    if len(kept) < 2:
        return f"{text}."
    if kept[0] > kept[1]:
        return f"{text}, and what is dark elsewhere by looks alone is what the nouns cleared up."
    return f"{text}, with nouns on the left and without them on the right."
