"""A table of scores: measured and published values, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nouncut.paper.published import DEFAULT_BACKBONE, METRICS, published_value, published_values
from nouncut.paper.scores import Result
from nouncut.paper.tables.paper_tables import FROM_PIXELS, Layout, Row

Measured = Mapping[tuple[str, Row], Sequence[Result]]
"""The results of every seed, by the title of a column and row."""


class Column(NamedTuple):
    """A data set of a table: a title that no other has, and its name in the paper, if any."""

    title: str
    paper_name: str | None = None


AVERAGE = Column("Average")


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
    """A row with its cells by column's title and metric, and its mean seconds per run."""

    row: Row
    cells: Mapping[tuple[str, str], Cell]
    seconds: float | None = None


@dataclass(frozen=True)
class Table:
    """A table of one model; `backbone` is the model of its published values."""

    layout: Layout
    model: str
    backbone: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]

    @property
    def datasets(self) -> list[str]:
        """Titles of the columns without the average."""
        return [column.title for column in self.columns if column is not AVERAGE]

    def has_published(self, title: str) -> bool:
        """Tell whether any row has a published value in a column."""
        return any(
            row.cells[title, metric].published is not None
            for row in self.rows
            for metric in METRICS
        )


def build_table(layout: Layout, model: str, columns: Sequence[Column], measured: Measured) -> Table:
    """Put measured values beside published ones; rows without any value are left out."""
    backbone = find_backbone(model, layout)
    titles = [column.title for column in columns]
    rows = []
    for row in layout.rows:
        results = {title: measured.get((title, row), ()) for title in titles}
        cells = {
            (column.title, metric): Cell(
                tuple(100 * float(getattr(one, metric.lower())) for one in results[column.title]),
                _published(layout, row, column.paper_name, metric, backbone),
            )
            for column in columns
            for metric in METRICS
        }
        if len(titles) > 1:
            cells |= {
                (AVERAGE.title, metric): _average(cells, titles, metric) for metric in METRICS
            }
        seconds = [result.seconds for title in titles for result in results[title]]
        if any(cell.measured or cell.published is not None for cell in cells.values()):
            rows.append(TableRow(row, cells, float(np.mean(seconds)) if seconds else None))
    shown = (*columns, AVERAGE) if len(columns) > 1 else tuple(columns)
    return Table(layout, model, backbone, shown, tuple(rows))


def find_backbone(model: str, layout: Layout) -> str:
    """Return the model of the published values: the same, or the first of the table's own."""
    known = {value.backbone for value in published_values() if value.table in layout.published}
    for name in (model, *layout.models):
        # Short names tell OpenCLIP's two collections apart, the paper's table does not.
        backbone = name.replace("OpenCLIP-", "OpenCLIP ").removesuffix("-400M")
        if backbone in known:
            return backbone
    return DEFAULT_BACKBONE


def _published(
    layout: Layout, row: Row, dataset: str | None, metric: str, backbone: str
) -> float | None:
    if dataset is None:
        return None
    title = row.published or row.title
    tables = [
        label for label in layout.published if not row.method or (label, title) not in FROM_PIXELS
    ]
    return published_value(tables, title, dataset, metric, section=row.section, backbone=backbone)


def _average(cells: Mapping[tuple[str, str], Cell], titles: Sequence[str], metric: str) -> Cell:
    """Return the mean over data sets, seed by seed, where every data set has a value."""
    row = [cells[title, metric] for title in titles]
    n_seeds = min(len(cell.measured) for cell in row)
    measured = np.mean([cell.measured[:n_seeds] for cell in row], axis=0)
    published = [cell.published for cell in row if cell.published is not None]
    mean = float(np.mean(published)) if len(published) == len(row) else None
    return Cell(tuple(measured.tolist()), mean)
