"""Ablations as figures and tables on disk."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nouncut.paper.bench.ablation import Curve, Parameter, ablate, affinities, convergence
from nouncut.paper.bench.charts import Series, line_chart, matrix_chart
from nouncut.paper.bench.files import slug, write_whole
from nouncut.paper.bench.subject import Subject, Workshop
from nouncut.paper.tables.table import METRICS
from nouncut.paper.tables.text import csv_text
from nouncut.report.drawing import Drawing, to_picture, to_svg


def draw_ablation(
    subject: Subject, workshop: Workshop, parameter: Parameter, seeds: int = 5
) -> list[Path]:
    """Draw how scores change with a parameter."""
    curve = ablate(subject, workshop, parameter, seeds)
    rows = curve.records()
    return _write(subject, workshop, parameter, _curve_chart(subject.name, curve, rows), rows)


def draw_convergence(subject: Subject, workshop: Workshop) -> list[Path]:
    """Draw the objective and the score at every step of the diffusion."""
    found = convergence(subject.problem(0), subject.labels)
    steps = [str(step + 1) for step in range(len(found.nmi))]
    chart = line_chart(
        subject.name,
        "iteration",
        steps,
        [Series("objective", found.objective), Series("NMI", found.nmi, on_the_right=True)],
    )
    rows = [
        {"iteration": step, "objective": objective, "NMI": nmi}
        for step, objective, nmi in zip(steps, found.objective, found.nmi, strict=True)
    ]
    return _write(subject, workshop, "convergence", chart, rows)


def draw_affinities(subject: Subject, workshop: Workshop) -> list[Path]:
    """Draw affinity matrices, images sorted by class."""
    matrices = affinities(subject.problem(0), subject.labels)
    return _write(subject, workshop, "affinity", matrix_chart(subject.name, matrices), [])


def _curve_chart(name: str, curve: Curve, rows: Sequence[dict[str, Any]]) -> Drawing:
    def series(metric: str) -> Series:
        own = [row for row in rows if row["metric"] == metric]
        return Series(
            metric, [row["mean"] for row in own], [row["deviation"] or 0.0 for row in own]
        )

    mark = curve.values.index(curve.default)
    steps = [f"{value:g}" for value in curve.values]
    return line_chart(name, curve.parameter, steps, [series(metric) for metric in METRICS], mark)


def _write(
    subject: Subject,
    workshop: Workshop,
    figure: str,
    drawing: Drawing,
    rows: Sequence[dict[str, Any]],
) -> list[Path]:
    stem = f"{figure}-{slug(subject.name)}-{slug(workshop.model)}"
    picture = io.BytesIO()
    to_picture(drawing).save(picture, "PNG")
    svg = to_svg(drawing, f"{figure} of {subject.name}", for_page=False)
    contents = {"svg": svg.encode(), "png": picture.getvalue()}
    if rows:
        contents["csv"] = csv_text(rows).encode()
    paths = [workshop.output / f"{stem}.{suffix}" for suffix in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        write_whole(path, content)
    return paths
