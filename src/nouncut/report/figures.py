"""Figures of the method: what happened inside a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from nouncut.compute.files import AnyPath, atomic_file, explained_writing
from nouncut.report.affinity_matrix import draw_affinities
from nouncut.report.charts import (
    HALF_WIDTH,
    WIDTH,
    draw_bars,
    draw_curves,
    draw_spectrum,
    side_by_side,
    stacked,
)
from nouncut.report.drawing import Drawing, to_picture, to_svg
from nouncut.report.said import Number, say
from nouncut.runs.run import Run

# One colour per prompt; further prompts share the last.
_COLOURS = ("#3f7cac", "#c8742f", "#5a9a51", "#b5549b", "#8a7a3d", "#5f6fc4", "#b14a4a", "#7d8790")


@dataclass(frozen=True)
class Figure:
    """A drawing with its title and a caption of one sentence."""

    name: str
    title: str
    drawing: Drawing
    caption: str

    @property
    def svg(self) -> str:
        """The drawing as SVG for the page."""
        return to_svg(self.drawing, self.title)


def method_figures(run: Run) -> list[Figure]:
    """Draw all figures that a run has the numbers for."""
    affinities = draw_affinities(run)
    figures = [
        Figure("affinity", say("affinity"), *affinities) if affinities else None,
        _diffusion(run.manifest),
        _eigenvalues(run.manifest),
        _cluster_count(run.manifest),
    ]
    return [figure for figure in figures if figure is not None]


def save_figures(run: Run, folder: AnyPath) -> list[Path]:
    """Save the figures to a folder, each as SVG and as PNG."""
    target = Path(folder)
    saved = []
    with explained_writing("the figures", target, "choose another folder"):
        target.mkdir(parents=True, exist_ok=True)
        for figure in method_figures(run):
            svg = to_svg(figure.drawing, f"{figure.title}. {figure.caption}", for_page=False)
            png = BytesIO()
            to_picture(figure.drawing).save(png, "PNG", optimize=True)
            contents = {".svg": f"{svg}\n".encode(), ".png": png.getvalue()}
            for suffix, content in contents.items():
                path = target / f"{figure.name}{suffix}"
                with atomic_file(path) as file:
                    file.write(content)
                saved.append(path)
    return saved


def _diffusion(manifest: Mapping[str, Any]) -> Figure | None:
    objective = _numbers(manifest.get("objective"))
    prompts = manifest.get("prompts") or []
    weights = [float(prompt.get("weight") or 0) for prompt in prompts]
    steps = [_numbers(step) for step in manifest.get("weight_steps") or []]
    if not (len(weights) > 1 and len(steps) > 1 and all(len(s) == len(weights) for s in steps)):
        steps = []
    colours = ["accent"] * len(weights)
    if steps:
        colours = [_COLOURS[min(prompt, len(_COLOURS) - 1)] for prompt in range(len(weights))]
    panels = _panels_over_steps(objective, steps, colours)
    rows = [side_by_side(panels)] if panels else []
    if len(weights) > 1:
        templates = [str(prompt.get("template") or "") for prompt in prompts]
        shown = [Number(weight, 3) for weight in weights]
        rows.append(draw_bars(templates, weights, shown, colours, say("diffusion.final")))
    if not rows:
        return None
    caption = say("diffusion.steps" if panels else "diffusion.one")
    return Figure("diffusion", say("diffusion"), stacked(rows), caption)


def _panels_over_steps(
    objective: list[float], steps: Sequence[list[float]], colours: list[str]
) -> list[Drawing]:
    """Draw the objective and the weights of the prompts over the steps of the diffusion."""
    has_objective = len(objective) > 1
    width = HALF_WIDTH if has_objective and steps else WIDTH
    panels, unit = [], say("diffusion.step")
    if has_objective:
        title = say("diffusion.objective")
        panels.append(draw_curves([objective], ["accent"], title, unit, width=width))
    if steps:
        curves = [list(curve) for curve in zip(*steps, strict=True)]
        title = say("diffusion.weights")
        panels.append(draw_curves(curves, colours, title, unit, width=width))
    return panels


def _eigenvalues(manifest: Mapping[str, Any]) -> Figure | None:
    values = _numbers(manifest.get("eigenvalues"))
    if len(values) < 2:
        return None
    n_used = min(int(manifest.get("n_clusters") or len(values)), len(values))
    caption = (
        say("eigenvalues.fall", number=n_used)
        if 0 < n_used < len(values)
        else say("eigenvalues.all", number=len(values))
    )
    drawing = draw_spectrum(sorted(values, reverse=True), n_used or len(values))
    return Figure("eigenvalues", say("eigenvalues"), drawing, caption)


def _cluster_count(manifest: Mapping[str, Any]) -> Figure | None:
    count = manifest.get("cluster_count") or {}
    found = [(int(number), float(score or 0)) for number, score in count.get("candidates") or []]
    if len(found) < 2:
        return None
    found.sort()
    names = [say("clusters", n=number) for number, _ in found]
    scores = [max(score, 0.0) for _, score in found]
    best = max(scores)
    colours = ["accent" if score == best else "quiet" for score in scores]
    shown = [Number(score, 2) for score in scores]
    drawing = draw_bars(names, scores, shown, colours, say("numbers.score"))
    return Figure("cluster-count", say("numbers"), drawing, say("numbers.caption"))


def _numbers(values: Any) -> list[float]:
    return [float(v) for v in values or [] if v is not None and math.isfinite(v)]
