"""A table of scores: measured and published values, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nouncut.paper.published import DEFAULT_BACKBONE, METRICS, published_value, published_values
from nouncut.paper.scores import Result
from nouncut.paper.tables.paper_tables import FROM_PIXELS, Layout, Row

AVERAGE = "Average"

Measured = Mapping[tuple[str, Row], Sequence[Result]]
"""The results of every seed, by data set and row."""


@dataclass(frozen=True)
class Cell:
    """A score in per cent: of every seed, and published."""

    measured: tuple[float, ...] = ()
    published: float | None = None

    @property
    def mean(self) -> float | None:
        """Mean over seeds."""
        return float(np.mean(self.measured)) if self.measured else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over seeds; None for a single seed."""
        return float(np.std(self.measured, ddof=1)) if len(self.measured) > 1 else None


@dataclass(frozen=True)
class TableRow:
    """A row with its cells by data set and metric, and its mean seconds per run."""

    row: Row
    cells: Mapping[tuple[str, str], Cell]
    seconds: float | None = None


@dataclass(frozen=True)
class Table:
    """A table of one model; `backbone` is the model of its published values."""

    layout: Layout
    model: str
    backbone: str
    datasets: tuple[str, ...]
    rows: tuple[TableRow, ...]

    def has_published(self, dataset: str) -> bool:
        """Tell whether any row has a published value on a data set."""
        return any(
            row.cells[dataset, metric].published is not None
            for row in self.rows
            for metric in METRICS
        )


def build_table(layout: Layout, model: str, datasets: Sequence[str], measured: Measured) -> Table:
    """Put measured values beside published ones; rows without any value are left out."""
    backbone = find_backbone(model, layout)
    rows = []
    for row in layout.rows:
        results = {name: measured.get((name, row), ()) for name in datasets}
        cells = {
            (name, metric): Cell(
                tuple(100 * float(getattr(result, metric.lower())) for result in results[name]),
                _published(layout, row, name, metric, backbone),
            )
            for name in datasets
            for metric in METRICS
        }
        if len(datasets) > 1:
            cells |= {(AVERAGE, metric): _average(cells, datasets, metric) for metric in METRICS}
        seconds = [result.seconds for name in datasets for result in results[name]]
        if any(cell.measured or cell.published is not None for cell in cells.values()):
            rows.append(TableRow(row, cells, float(np.mean(seconds)) if seconds else None))
    shown = (*datasets, AVERAGE) if len(datasets) > 1 else tuple(datasets)
    return Table(layout, model, backbone, shown, tuple(rows))


def find_backbone(model: str, layout: Layout) -> str:
    """Return the model of the published values: the same, or the first of the table's own."""
    known = {value.backbone for value in published_values() if value.table in layout.published}
    for name in (model, *layout.models):
        backbone = name.replace("OpenCLIP-", "OpenCLIP ")
        if backbone in known:
            return backbone
    return DEFAULT_BACKBONE


def _published(layout: Layout, row: Row, dataset: str, metric: str, backbone: str) -> float | None:
    title = row.published or row.title
    tables = [
        label for label in layout.published if not row.method or (label, title) not in FROM_PIXELS
    ]
    return published_value(tables, title, dataset, metric, section=row.section, backbone=backbone)


def _average(cells: Mapping[tuple[str, str], Cell], datasets: Sequence[str], metric: str) -> Cell:
    """Return the mean over data sets, seed by seed, where every data set has a value."""
    row = [cells[dataset, metric] for dataset in datasets]
    n_seeds = min(len(cell.measured) for cell in row)
    measured = np.mean([cell.measured[:n_seeds] for cell in row], axis=0)
    published = [cell.published for cell in row if cell.published is not None]
    mean = float(np.mean(published)) if len(published) == len(row) else None
    return Cell(tuple(measured.tolist()), mean)
