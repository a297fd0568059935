"""The paper's figures: curves of scores, the course of the diffusion, affinity matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.report.drawing import Cells, Dot, Drawing, Line, Shape, Text

# Dark enough on white, and apart for readers who do not see red or green.
COLOURS = ("#0072b2", "#d55e00", "#009e73")
_WIDTH, _HEIGHT = 420.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 58.0, 44.0, 52.0
_SIDE, _GAP = 260.0, 24.0
_TICKS = 5
_FLAT = 0.005


@dataclass(frozen=True)
class Series:
    """A line of a chart."""

    name: str
    values: Sequence[float]
    deviations: Sequence[float] | None = None
    on_the_right: bool = False


def line_chart(
    title: str, label: str, steps: Sequence[str], series: Sequence[Series], mark: int | None = None
) -> Drawing:
    """Draw lines over equal steps."""
    base = _HEIGHT - _BOTTOM
    shapes: list[Shape] = [
        Text(_WIDTH / 2, 18, title, "ink", "middle", 14),
        Text(_WIDTH / 2, _HEIGHT - 10, label, "ink", "middle"),
    ]
    if mark is not None:
        place = _x(mark, len(steps))
        shapes.append(Line(((place, _TOP), (place, base)), "line", 3))
    shapes += [
        Text(_x(place, len(steps)), base + 16, step, anchor="middle", size=10)
        for place, step in enumerate(steps)
    ]
    for right in sorted({one.on_the_right for one in series}):
        shapes += _axis([one for one in series if one.on_the_right == right], right)
    for number, one in enumerate(series):
        own = [other for other in series if other.on_the_right == one.on_the_right]
        colour, left = COLOURS[number % len(COLOURS)], _LEFT + number * 110.0
        shapes += _curve(one, colour, _span(own))
        shapes.append(Line(((left, _TOP - 12), (left + 16, _TOP - 12)), colour, 2))
        shapes.append(Text(left + 20, _TOP - 8, one.name, "ink", size=11))
    shapes.append(Line(((_LEFT, base), (_WIDTH - _RIGHT, base))))
    return Drawing(_WIDTH, _HEIGHT, tuple(shapes))


def matrix_chart(title: str, matrices: Mapping[str, NDArray[np.float64]]) -> Drawing:
    """Draw matrices side by side."""
    width = len(matrices) * (_SIDE + _GAP) + _GAP
    shapes: list[Shape] = [Text(width / 2, 20, title, "ink", "middle", 14)]
    for number, (name, values) in enumerate(matrices.items()):
        left = _GAP + number * (_SIDE + _GAP)
        strength = np.rint(255 * values).astype(np.uint8)
        shapes.append(Cells(left, 36, _SIDE, strength, f"matrix-{number}"))
        shapes.append(Text(left + _SIDE / 2, _SIDE + 56, name, "ink", "middle"))
    return Drawing(width, _SIDE + 70, tuple(shapes))


def _axis(series: Sequence[Series], on_the_right: bool) -> list[Shape]:
    low, high = _span(series)
    edge = _WIDTH - _RIGHT if on_the_right else _LEFT
    outwards = 1 if on_the_right else -1
    shapes: list[Shape] = [Line(((edge, _TOP), (edge, _HEIGHT - _BOTTOM)))]
    for value in np.linspace(low, high, _TICKS):
        height = _y(float(value), (low, high))
        shapes.append(Line(((edge, height), (edge + 4 * outwards, height))))
        anchor: Literal["start", "end"] = "start" if on_the_right else "end"
        place = edge + 7 * outwards
        shapes.append(Text(place, height + 4, f"{value:.4g}", anchor=anchor, size=10))
    return shapes


def _curve(one: Series, colour: str, span: tuple[float, float]) -> list[Shape]:
    places = [_x(place, len(one.values)) for place in range(len(one.values))]
    points = tuple((x, _y(value, span)) for x, value in zip(places, one.values, strict=True))
    shapes: list[Shape] = [Line(points, colour, 2)] if len(points) > 1 else []
    shapes += [Dot(x, y, 3, colour) for x, y in points]
    for x, value, deviation in zip(places, one.values, one.deviations or (), strict=False):
        ends = tuple((x, _y(value + sign * deviation, span)) for sign in (-1, 1))
        shapes.append(Line(ends, colour))
    return shapes


def _span(series: Sequence[Series]) -> tuple[float, float]:
    """Return a range that holds all values and their bars, and is not empty."""
    values = np.concatenate(
        [
            np.add(one.values, sign * np.asarray(one.deviations or 0.0))
            for one in series
            for sign in (-1, 1)
        ]
    )
    low, high = float(values.min()), float(values.max())
    # Values that hardly differ are to look flat.
    margin = max(0.08 * (high - low), _FLAT * max(abs(low), abs(high))) or 1.0
    return low - margin, high + margin


def _x(place: int, n_steps: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (place + 0.5) / n_steps


def _y(value: float, span: tuple[float, float]) -> float:
    low, high = span
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - low) / (high - low)
