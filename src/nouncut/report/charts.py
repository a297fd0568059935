"""Charts of numbers: bars, curves over steps, a spectrum."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nouncut.report.drawing import Bar, Dot, Drawing, Line, Shape, Text, moved
from nouncut.report.said import Number, say

WIDTH = 480.0
GAP = 20.0
HALF_WIDTH = (WIDTH - GAP) / 2
_PLOT_HEIGHT = 150.0
# Space around a plot: for the title above it and for the numbers beside and below it.
_TOP, _LEFT, _BOTTOM, _RIGHT = 30.0, 48.0, 26.0, 12.0
_ROW = 22.0
_NAME_WIDTH, _VALUE_WIDTH = 190.0, 44.0
_MAX_LETTERS = 30
# Curves that vary by less than this share of their values look flat.
_FLAT = 0.01
# Curves with more points than this have no dots: they would run into each other.
_MAX_DOTS = 60
# The axis has at least this many intervals, and about twice as many at most.
_MIN_INTERVALS = 2.5


def draw_bars(
    names: Sequence[str],
    lengths: Sequence[float],
    values: Sequence[str],
    colours: Sequence[str],
    title: str,
) -> Drawing:
    """Draw horizontal bars, each with its name before it and its value behind it."""
    full = WIDTH - _NAME_WIDTH - _VALUE_WIDTH
    longest = max(lengths) or 1.0
    shapes: list[Shape] = [Text(0, 14, title, "ink")]
    for row, (name, length, value, colour) in enumerate(
        zip(names, lengths, values, colours, strict=True)
    ):
        top = _TOP + row * _ROW
        width = max(full * length / longest, 1.0)
        short = name if len(name) <= _MAX_LETTERS else f"{name[: _MAX_LETTERS - 1]}…"
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
    """Draw curves over equal steps, on one scale."""
    axes = _Axes(len(curves[0]), [value for curve in curves for value in curve], width)
    shapes = axes.frame(title, unit)
    for curve, colour in zip(curves, colours, strict=True):
        shapes += axes.curve(curve, colour)
    return Drawing(width, axes.height, tuple(shapes))


def draw_spectrum(values: Sequence[float], n_used: int) -> Drawing:
    """Draw descending eigenvalues with a line after the first `n_used`."""
    axes = _Axes(len(values), values, WIDTH)
    shapes = axes.frame("", say("eigenvalues.number"))
    has_rest = n_used < len(values)
    x = axes.x(n_used - 0.5 if has_rest else n_used - 1)
    shapes.append(Line(((x, _TOP - 8), (x, _TOP + _PLOT_HEIGHT)), "quiet"))
    label = f"K = {n_used:,}"
    if x > WIDTH - 90:
        shapes.append(Text(x - 6, _TOP - 8, label, "ink", "end"))
    else:
        shapes.append(Text(x + 6, _TOP - 8, label, "ink"))
    if has_rest:
        shapes += axes.curve(values, "quiet")
    shapes += axes.curve(values[:n_used], "accent")
    return Drawing(WIDTH, axes.height, tuple(shapes))


def side_by_side(drawings: Sequence[Drawing]) -> Drawing:
    """Put drawings beside each other."""
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


class _Axes:
    """The axes of a chart of values over equal steps."""

    def __init__(self, n_steps: int, values: Sequence[float], width: float) -> None:
        self.n_steps, self.width = n_steps, width
        self.height = _TOP + _PLOT_HEIGHT + _BOTTOM
        self.ticks = _ticks(min(values), max(values))

    def x(self, step: float) -> float:
        return _LEFT + (self.width - _LEFT - _RIGHT) * step / max(self.n_steps - 1, 1)

    def y(self, value: float) -> float:
        highest, lowest = self.ticks[-1], self.ticks[0]
        return _TOP + _PLOT_HEIGHT * (highest - value) / (highest - lowest)

    def frame(self, title: str, unit: str) -> list[Shape]:
        """Return the title, the grid lines and the labels of both axes."""
        base = _TOP + _PLOT_HEIGHT
        shapes: list[Shape] = [Text(0, 14, title, "ink")] if title else []
        for value in self.ticks:
            y = self.y(value)
            shapes.append(Line(((_LEFT - 4, y), (self.width, y)), "line"))
            shapes.append(Text(_LEFT - 10, y + 4, _number(value), anchor="end", size=11))
        shapes.append(Text(self.x(0), base + 18, "1", anchor="middle", size=11))
        last, right = Number(self.n_steps), self.x(self.n_steps - 1)
        shapes.append(Text(right, base + 18, last, anchor="middle", size=11))
        middle = (self.x(0) + right) / 2
        shapes.append(Text(middle, base + 18, unit, anchor="middle", size=11))
        return shapes

    def curve(self, values: Sequence[float], colour: str) -> list[Shape]:
        """Return a curve that begins at the first step."""
        points = tuple((self.x(step), self.y(value)) for step, value in enumerate(values))
        shapes: list[Shape] = [Line(points, colour, 2.0)] if len(points) > 1 else []
        if self.n_steps <= _MAX_DOTS:
            shapes += [Dot(x, y, 3.0, colour) for x, y in points]
        return shapes


def _ticks(low: float, high: float) -> list[float]:
    """Return equally spaced round values from below `low` to above `high`."""
    smallest_range = _FLAT * max(abs(low), abs(high)) or 1.0
    missing = max(0.0, smallest_range - (high - low)) / 2
    low, high = low - missing, high + missing
    rough = (high - low) / _MIN_INTERVALS
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = magnitude * max(factor for factor in (1, 2, 5) if factor * magnitude <= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return Number(value)
    text = f"{value:.4g}"
    return text if "e" in text else Number(value, len(text.partition(".")[2]))
