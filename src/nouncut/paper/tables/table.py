"""A table as numbers: what was measured, and what was published, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nouncut.paper.published import DEFAULT_BACKBONE, published_value, published_values
from nouncut.paper.scores import ClusteringScores
from nouncut.paper.tables.layouts import FROM_PIXELS, Layout, Row

METRICS = ("NMI", "ACC", "ARI")
AVERAGE = "Average"


@dataclass(frozen=True)
class Cell:
    """A score."""

    measured: tuple[float, ...] = ()
    published: float | None = None

    @property
    def mean(self) -> float | None:
        """Mean over seeds."""
        return float(np.mean(self.measured)) if self.measured else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over seeds, of the sample; None for a single seed."""
        return float(np.std(self.measured, ddof=1)) if len(self.measured) > 1 else None


@dataclass(frozen=True)
class TableRow:
    """A row of numbers."""

    row: Row
    cells: Mapping[tuple[str, str], Cell]
    seconds: float | None = None


@dataclass(frozen=True)
class Table:
    """A table of numbers, of one model."""

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


@dataclass(frozen=True)
class Measured:
    """What a method did on a data set."""

    scores: tuple[ClusteringScores, ...]
    seconds: tuple[float, ...]


def build_table(
    layout: Layout,
    model: str,
    datasets: Sequence[str],
    measured: Mapping[tuple[str, Row], Measured],
) -> Table:
    """Put measured values beside published ones."""
    backbone = find_backbone(model, layout)
    rows = []
    for row in layout.rows:
        cells = {
            (dataset, metric): _cell(layout, row, dataset, metric, backbone, measured)
            for dataset in datasets
            for metric in METRICS
        }
        if len(datasets) > 1:
            cells |= {(AVERAGE, metric): _average(cells, datasets, metric) for metric in METRICS}
        times = [s for name in datasets if (m := measured.get((name, row))) for s in m.seconds]
        if any(cell.measured or cell.published is not None for cell in cells.values()):
            rows.append(TableRow(row, cells, float(np.mean(times)) if times else None))
    shown = (*datasets, AVERAGE) if len(datasets) > 1 else tuple(datasets)
    return Table(layout, model, backbone, shown, tuple(rows))


def find_backbone(model: str, layout: Layout) -> str:
    """Return the model whose published values stand beside measured ones."""
    known = {value.backbone for value in published_values() if value.table in layout.published}
    for name in (model, *layout.models):
        if _backbone(name) in known:
            return _backbone(name)
    return DEFAULT_BACKBONE


def _backbone(model: str) -> str:
    return model.replace("OpenCLIP-", "OpenCLIP ")


def _cell(
    layout: Layout,
    row: Row,
    dataset: str,
    metric: str,
    backbone: str,
    measured: Mapping[tuple[str, Row], Measured],
) -> Cell:
    found = measured.get((dataset, row))
    values = [getattr(scores, metric.lower()) for scores in found.scores] if found else []
    title = row.published or row.title
    published = published_value(
        [
            label
            for label in layout.published
            if not row.method or (label, title) not in FROM_PIXELS
        ],
        title,
        dataset,
        metric,
        section=row.section,
        backbone=backbone,
    )
    return Cell(tuple(100 * float(value) for value in values), published)


def _average(cells: Mapping[tuple[str, str], Cell], datasets: Sequence[str], metric: str) -> Cell:
    """Return the mean over data sets, seed by seed, where every data set has a value."""
    row = [cells[dataset, metric] for dataset in datasets]
    n_seeds = min(len(cell.measured) for cell in row)
    measured = np.mean([cell.measured[:n_seeds] for cell in row], axis=0)
    published = [cell.published for cell in row if cell.published is not None]
    mean = float(np.mean(published)) if len(published) == len(row) else None
    return Cell(tuple(measured.tolist()), mean)
