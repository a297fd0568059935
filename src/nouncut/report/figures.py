"""Pictures of the method: what the run looked like from the inside."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nouncut.report.affinities import draw_affinities
from nouncut.report.charts import (
    HALF_WIDTH,
    WIDTH,
    draw_bars,
    draw_curves,
    draw_steps_down,
    side_by_side,
    stacked,
)
from nouncut.report.drawing import Drawing, to_picture, to_svg
from nouncut.runs.run import Run

# As many prompts are told apart by colour; further ones share the last.
_HUES = ("#3f7cac", "#c8742f", "#5a9a51", "#b5549b", "#8a7a3d", "#5f6fc4", "#b14a4a", "#7d8790")


@dataclass(frozen=True)
class Figure:
    """A picture of the method."""

    name: str
    title: str
    svg: str
    sentence: str


@dataclass(frozen=True)
class _Sketch:
    name: str
    title: str
    drawing: Drawing
    sentence: str


def method_figures(run: Run) -> list[Figure]:
    """Draw the pictures of the method."""
    return [
        Figure(sketch.name, sketch.title, to_svg(sketch.drawing, sketch.title), sketch.sentence)
        for sketch in _sketches(run)
    ]


def save_figures(run: Run, folder: str | os.PathLike[str]) -> list[Path]:
    """Save the pictures of the method, each as SVG and as PNG."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    saved = []
    for sketch in _sketches(run):
        vector, pixels = place / f"{sketch.name}.svg", place / f"{sketch.name}.png"
        text = to_svg(sketch.drawing, f"{sketch.title}. {sketch.sentence}", for_page=False)
        vector.write_text(text + "\n", encoding="utf-8", newline="\n")
        to_picture(sketch.drawing).save(pixels, optimize=True)
        saved += [vector, pixels]
    return saved


def _sketches(run: Run) -> Iterator[_Sketch]:
    drawn = draw_affinities(run)
    if drawn is not None:
        yield _Sketch("affinity", "Affinity matrix", *drawn)
    manifest = run.manifest
    for draw in (_diffusion, _eigenvalues, _cluster_count):
        sketch = draw(manifest)
        if sketch is not None:
            yield sketch


def _diffusion(manifest: Mapping[str, Any]) -> _Sketch | None:
    objective = _numbers(manifest.get("objective"))
    prompts = manifest.get("prompts") or []
    weights = [float(prompt.get("weight") or 0) for prompt in prompts]
    steps = [_numbers(step) for step in manifest.get("weight_steps") or []]
    colours = [_HUES[min(prompt, len(_HUES) - 1)] for prompt in range(len(weights))]
    has_steps = len(weights) > 1 and len(steps) > 1
    has_steps = has_steps and all(len(step) == len(weights) for step in steps)
    width = HALF_WIDTH if len(objective) > 1 and has_steps else WIDTH
    panels: list[Drawing] = []
    if len(objective) > 1:
        panels.append(draw_curves([objective], ["accent"], "Objective", "step", width=width))
    if has_steps:
        curves = [list(curve) for curve in zip(*steps, strict=True)]
        title = "Weights of the prompts"
        panels.append(draw_curves(curves, colours, title, "step", width=width))
    else:
        colours = ["accent"] * len(weights)
    rows = [side_by_side(panels)] if panels else []
    if len(weights) > 1:
        names = [str(prompt.get("template") or "") for prompt in prompts]
        shown = [f"{weight:.3f}" for weight in weights]
        rows.append(draw_bars(names, weights, shown, colours, "Weights of the prompts at the end"))
    if not rows:
        return None
    sentence = (
        "Every step re-weights the prompts so that their graphs agree: the objective falls until "
        "nothing is gained any more, and prompts with longer bars counted for more."
        if panels
        else "One step weighted the prompts so that their graphs agree: those with longer bars "
        "counted for more."
    )
    return _Sketch("diffusion", "Diffusion and prompt weights", stacked(rows), sentence)


def _eigenvalues(manifest: Mapping[str, Any]) -> _Sketch | None:
    values = _numbers(manifest.get("eigenvalues"))
    if len(values) < 2:
        return None
    chosen = min(int(manifest.get("n_clusters") or len(values)), len(values))
    sentence = "An eigenvalue near 1 stands for a group that few links leave; " + (
        f"a steep fall after the {chosen:,} that were used speaks for this number of clusters."
        if 0 < chosen < len(values)
        else f"these are the {len(values):,} that the clusters were found with."
    )
    drawing = draw_steps_down(sorted(values, reverse=True), chosen or len(values))
    return _Sketch("eigenvalues", "Eigenvalues of the graph", drawing, sentence)


def _cluster_count(manifest: Mapping[str, Any]) -> _Sketch | None:
    count = manifest.get("cluster_count") or {}
    found = [(int(number), float(score or 0)) for number, score in count.get("candidates") or []]
    if len(found) < 2:
        return None
    found.sort()
    names = [f"{number:,} clusters" for number, _ in found]
    scores = [max(score, 0.0) for _, score in found]
    best = max(scores)
    colours = ["accent" if score == best else "quiet" for score in scores]
    shown = [f"{score:.2f}" for score in scores]
    drawing = draw_bars(names, scores, shown, colours, "Score of every number")
    sentence = (
        "The longer the bar, the better this number divides the images; the longest was taken, and "
        "others nearly as long are worth a try."
    )
    return _Sketch("cluster-count", "Number of clusters", drawing, sentence)


def _numbers(values: Any) -> list[float]:
    return [float(v) for v in values or [] if v is not None and math.isfinite(v)]
