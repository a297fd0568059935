"""Plain charts, drawn from numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nouncut.report.drawing import Bar, Dot, Drawing, Line, Shape, Text, moved

WIDTH = 480.0
GAP = 20.0
HALF_WIDTH = (WIDTH - GAP) / 2
_PLOT_HEIGHT = 150.0
# Room for the title above a plot, for numbers to its left, and for those below it.
_TOP, _LEFT, _BOTTOM = 30.0, 48.0, 26.0
_RIGHT = 12.0
_ROW = 22.0
_NAME_WIDTH, _VALUE_WIDTH = 190.0, 44.0
_LETTERS = 30
# Curves that vary by less than this share of their values are flat.
_FLAT = 0.01
# More points than this run into each other.
_MANY_POINTS = 60
# Between the values on an axis; there are at most about twice as many.
_FEWEST_STEPS = 2.5


def draw_bars(
    names: Sequence[str],
    lengths: Sequence[float],
    values: Sequence[str],
    colours: Sequence[str],
    title: str,
) -> Drawing:
    """Draw named bars."""
    room = WIDTH - _NAME_WIDTH - _VALUE_WIDTH
    longest = max(lengths) or 1.0
    shapes: list[Shape] = [Text(0, 14, title, "ink")]
    for row, (name, length, value, colour) in enumerate(
        zip(names, lengths, values, colours, strict=True)
    ):
        top = _TOP + row * _ROW
        width = max(room * length / longest, 1.0)
        short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
        shapes += [
            Text(_NAME_WIDTH - 10, top + 12, short, anchor="end"),
            Bar(_NAME_WIDTH, top + 2, width, _ROW - 10, colour),
            Text(_NAME_WIDTH + width + 8, top + 12, value),
        ]
    return Drawing(WIDTH, _TOP + len(names) * _ROW, tuple(shapes))


def draw_curves(
    curves: Sequence[Sequence[float]],
    colours: Sequence[str],
    title: str,
    unit: str,
    width: float = WIDTH,
) -> Drawing:
    """Draw curves over steps."""
    axis = _Axis(len(curves[0]), [value for curve in curves for value in curve], width)
    shapes = axis.frame(title, unit)
    for curve, colour in zip(curves, colours, strict=True):
        shapes += axis.curve(curve, colour)
    return Drawing(width, axis.height, tuple(shapes))


def draw_steps_down(values: Sequence[float], chosen: int) -> Drawing:
    """Draw falling values, of which the first so many were chosen."""
    axis = _Axis(len(values), values, WIDTH)
    shapes = axis.frame("", "eigenvalue number")
    beyond = chosen < len(values)
    place = axis.x(chosen - 0.5 if beyond else chosen - 1)
    near_right = place > WIDTH - 90
    shapes += [
        Line(((place, _TOP - 8), (place, _TOP + _PLOT_HEIGHT)), "quiet"),
        Text(
            place + (-6 if near_right else 6),
            _TOP - 8,
            f"K = {chosen:,}",
            "ink",
            "end" if near_right else "start",
        ),
    ]
    if beyond:
        shapes += axis.curve(values, "quiet")
    shapes += axis.curve(values[:chosen], "accent")
    return Drawing(WIDTH, axis.height, tuple(shapes))


def side_by_side(drawings: Sequence[Drawing]) -> Drawing:
    """Put drawings next to each other."""
    shapes: list[Shape] = []
    left = 0.0
    for drawing in drawings:
        shapes += [moved(shape, left, 0.0) for shape in drawing.shapes]
        left += drawing.width + GAP
    return Drawing(left - GAP, max(drawing.height for drawing in drawings), tuple(shapes))


def stacked(drawings: Sequence[Drawing]) -> Drawing:
    """Put drawings below each other."""
    shapes: list[Shape] = []
    top = 0.0
    for drawing in drawings:
        shapes += [moved(shape, 0.0, top) for shape in drawing.shapes]
        top += drawing.height + GAP
    return Drawing(WIDTH, top - GAP, tuple(shapes))


class _Axis:
    """Where values at equally spaced places lie on a chart."""

    def __init__(self, n_places: int, values: Sequence[float], width: float) -> None:
        self.n_places, self.width = n_places, width
        self.height = _TOP + _PLOT_HEIGHT + _BOTTOM
        self.ticks = _round_values(min(values), max(values))

    def x(self, place: float) -> float:
        """Return where a place is, counted from 0."""
        return _LEFT + (self.width - _LEFT - _RIGHT) * place / max(self.n_places - 1, 1)

    def y(self, value: float) -> float:
        """Return where a value is."""
        highest, lowest = self.ticks[-1], self.ticks[0]
        return _TOP + _PLOT_HEIGHT * (highest - value) / (highest - lowest)

    def frame(self, title: str, unit: str) -> list[Shape]:
        """Return the title, lines at round values and what is written at the axes."""
        base = _TOP + _PLOT_HEIGHT
        shapes: list[Shape] = [Text(0, 14, title, "ink")] if title else []
        for value in self.ticks:
            y = self.y(value)
            shapes.append(Line(((_LEFT - 4, y), (self.width, y)), "line"))
            shapes.append(Text(_LEFT - 10, y + 4, _shown(value), anchor="end", size=11))
        shapes.append(Text(self.x(0), base + 18, "1", anchor="middle", size=11))
        last, right = f"{self.n_places:,}", self.x(self.n_places - 1)
        shapes.append(Text(right, base + 18, last, anchor="middle", size=11))
        middle = (self.x(0) + right) / 2
        shapes.append(Text(middle, base + 18, unit, anchor="middle", size=11))
        return shapes

    def curve(self, values: Sequence[float], colour: str) -> list[Shape]:
        """Return a curve that begins at the first place."""
        points = tuple((self.x(place), self.y(value)) for place, value in enumerate(values))
        shapes: list[Shape] = [Line(points, colour, 2.0)] if len(points) > 1 else []
        if self.n_places <= _MANY_POINTS:
            shapes += [Dot(x, y, 3.0, colour) for x, y in points]
        return shapes


def _round_values(low: float, high: float) -> list[float]:
    """Return equally spaced round values from below the lowest to above the highest."""
    # Values that hardly differ are to look flat.
    least = _FLAT * max(abs(low), abs(high)) or 1.0
    missing = max(0.0, least - (high - low)) / 2
    low, high = low - missing, high + missing
    rough = (high - low) / _FEWEST_STEPS
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = magnitude * max(factor for factor in (1, 2, 5) if factor * magnitude <= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _shown(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
