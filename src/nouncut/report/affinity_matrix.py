"""The figure of the affinity matrix: links between images, sorted by cluster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import label_matrix, unit_rows
from nouncut.method.graphs import neighbor_graph, normalize_graph, symmetrize_graph
from nouncut.method.neighbors import kernel_neighbors
from nouncut.report.charts import GAP, HALF_WIDTH, WIDTH
from nouncut.report.drawing import Cells, Drawing, Line, Shape, Text
from nouncut.report.said import say
from nouncut.runs.run import Run

_MAX_CELLS = 240
# Of larger collections, this many evenly spaced images are compared with all.
_MAX_ROWS = 4000
_DEFAULT_NEIGHBORS = 30
_TOP = 30.0
_LONE_SIDE = 320.0
# Marks show where clusters end, unless there are too many to tell apart.
_MARK = 5.0
_MAX_MARKS = 40
# Cells above this quantile are drawn in full colour: a few are much stronger than all others.
_FULL_COLOUR = 0.99
_TINY = np.finfo(np.float64).tiny


def draw_affinities(run: Run) -> tuple[Drawing, str] | None:
    """Draw the graph that was cut, beside one without nouns if there were any, with a caption."""
    if run.manifest["n_clusters"] < 2 or not run.has_array("graph_data"):
        return None
    labels = run.computed.labels
    cut = _unit_sums(run.graph(), np.arange(len(labels)))
    graphs: dict[str, csr_array] = {say("affinity.cut"): cut}
    if run.manifest.get("prompts") and run.has_array("features"):
        graphs = {say("affinity.nouns"): cut, say("affinity.looks"): _graph_without_nouns(run)}
    order = np.argsort(labels, kind="stable")
    matrices = {title: _binned(graph, order) for title, graph in graphs.items()}
    within = [_share_within(graph, labels) for graph in graphs.values()]
    ends = np.cumsum(np.bincount(labels))[:-1] / len(labels)
    height = _TOP + _side(len(matrices)) + 2 * _MARK
    return Drawing(WIDTH, height, tuple(_panels(matrices, within, ends))), _caption(within)


def _graph_without_nouns(run: Run) -> csr_array:
    """Return the (n, n) graph of visual features alone; for many images only some of its rows."""
    features = unit_rows(np.asarray(run.array("features")))
    n = len(features)
    q = min(int(run.manifest.get("n_neighbors") or _DEFAULT_NEIGHBORS), n - 1)
    if n <= _MAX_ROWS:
        graph = symmetrize_graph(neighbor_graph(kernel_neighbors(features, [], q)[0], n))
        return _unit_sums(normalize_graph(graph)[0], np.arange(n))
    rows = np.linspace(0, n - 1, _MAX_ROWS).astype(np.intp)
    # Each image finds itself among its neighbours, so ask for one more and drop that link.
    found = kernel_neighbors(features, [], q + 1, queries=(features[rows], []))[0]
    graph = neighbor_graph(found, n)
    entries = np.repeat(np.arange(len(rows)), np.diff(graph.indptr))
    graph.data[graph.indices == rows[entries]] = 0
    return _unit_sums(graph, rows)


def _unit_sums(graph: csr_array, rows: NDArray[np.intp]) -> csr_array:
    """Scale the rows of a (len(rows), n) graph to sum 1 and put them into an (n, n) graph."""
    total = np.asarray(graph.sum(axis=1)).ravel()
    entries = np.repeat(np.arange(len(rows)), np.diff(graph.indptr))
    weights = graph.data / np.maximum(total[entries], _TINY)
    n = graph.shape[1]
    return csr_array((weights, (rows[entries], graph.indices)), shape=(n, n))


def _binned(graph: csr_array, order: NDArray[np.intp]) -> NDArray[np.float64]:
    """Sort a graph and sum it into at most 240 by 240 cells, whose rows sum to 1."""
    n = len(order)
    n_cells = min(n, _MAX_CELLS)
    cell = np.empty(n, dtype=np.intp)
    cell[order] = np.arange(n) * n_cells // n
    members = label_matrix(cell, n_cells)
    binned = (members.T @ (graph @ members)).toarray()
    return np.asarray(binned / np.maximum(binned.sum(axis=1, keepdims=True), _TINY))


def _share_within(graph: csr_array, labels: NDArray[np.intp]) -> float:
    """Return the share of weight on links within clusters."""
    rows = np.repeat(np.arange(len(labels)), np.diff(graph.indptr))
    is_within = labels[rows] == labels[graph.indices]
    return float(graph.data[is_within].sum() / max(graph.data.sum(), _TINY))


def _panels(
    matrices: dict[str, NDArray[np.float64]], within: list[float], ends: NDArray[np.float64]
) -> list[Shape]:
    """Draw matrices side by side on one scale, with marks where clusters end."""
    positive = np.concatenate([matrix[matrix > 0] for matrix in matrices.values()])
    full = float(np.quantile(positive, _FULL_COLOUR)) if len(positive) else 1.0
    side = _side(len(matrices))
    shapes: list[Shape] = []
    for number, (title, matrix) in enumerate(matrices.items()):
        left = number * (HALF_WIDTH + GAP) + _MARK
        # The square root makes weak links visible.
        strength = np.rint(255 * np.sqrt(np.minimum(matrix / full, 1))).astype(np.uint8)
        share = say("affinity.within", number=round(100 * within[number]))
        shapes += [
            Text(left, 14, title, "ink"),
            Text(left + side, 14, share, anchor="end", size=11),
            Cells(left, _TOP, side, strength, f"affinity-{number}"),
            _frame(left, side),
        ]
        if len(ends) <= _MAX_MARKS:
            shapes += _marks(left, side, ends)
    return shapes


def _side(n_matrices: int) -> float:
    return HALF_WIDTH - _MARK if n_matrices > 1 else _LONE_SIDE


def _frame(left: float, side: float) -> Line:
    right, bottom = left + side, _TOP + side
    return Line(
        ((left, _TOP), (right, _TOP), (right, bottom), (left, bottom), (left, _TOP)), "line"
    )


def _marks(left: float, side: float, ends: NDArray[np.float64]) -> list[Shape]:
    bottom = _TOP + side
    shapes: list[Shape] = []
    for end in side * ends:
        shapes.append(Line(((left + end, bottom), (left + end, bottom + _MARK)), "quiet"))
        shapes.append(Line(((left - _MARK, _TOP + end), (left, _TOP + end)), "quiet"))
    return shapes


def _caption(within: list[float]) -> str:
    if len(within) < 2:
        return say("affinity.one")
    return say("affinity.better" if within[0] > within[1] else "affinity.both")
