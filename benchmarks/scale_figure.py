"""Figures of time and memory against the number of images or of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

COLOURS = {
    "nouncut": "#1f6f8b",
    "nouncut, RAD": "#7fb3c4",
    "scikit-learn": "#c8553d",
    "ARPACK": "#d9a441",
    "plain NumPy": "#8a6f9e",
    "exact RAD": "#7a7a7a",
    "all stages": "#1f6f8b",
    "neighbours": "#c8553d",
    "edges": "#d9a441",
    "cells": "#7a7a7a",
}
WIDTH, HEIGHT, LEFT, TOP = 320, 230, 60, 40


def draw(rows: Sequence[dict[str, Any]]) -> str:
    """Return an SVG with two panels on logarithmic axes; capped runs are hollow."""
    panels = [
        _panel(rows, "seconds", "seconds", LEFT),
        _panel([row for row in rows if "peak (GB)" in row], "peak (GB)", "GB", 2 * LEFT + WIDTH),
    ]
    title = "Time and peak memory of a fit against the number of images"
    return _svg(title, 3 * LEFT + 2 * WIDTH, *panels, _legend(rows))


def draw_partitions(rows: Sequence[dict[str, Any]]) -> str:
    """Return an SVG of the memory of a worker against the number of partitions."""
    unit = "GB of the largest worker"
    panel = _panel(rows, "peak (GB)", unit, LEFT, across="partitions", base=2)
    title, width = "Peak memory of a worker against the number of partitions", 3 * LEFT + WIDTH
    return _svg(title, width, panel, _legend(rows, 100))


def _svg(title: str, width: int, *parts: str) -> str:
    style = "text{font:12px sans-serif;fill:#333}"
    size = f"{width} {HEIGHT + 2 * TOP + 20}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">'
        f"<title>{title}</title>"
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>'
        + "".join(parts)
        + "</svg>\n"
    )


def fitted_exponent(images: Any, values: Any) -> float:
    """Return the slope of a straight line through the logarithms."""
    return float(np.polyfit(np.log(images), np.log(values), 1)[0])


def _panel(
    rows: Sequence[dict[str, Any]],
    key: str,
    unit: str,
    left: int,
    across: str = "images",
    base: int = 10,
) -> str:
    x, y = (np.log([row[name] for row in rows]) / np.log(base) for name in (across, key))
    low_x, high_x = np.floor(x.min()), np.ceil(x.max())
    low_y, high_y = np.floor(y.min()), np.ceil(y.max())

    def point(log_x: float, log_y: float) -> tuple[float, float]:
        right = left + WIDTH * (log_x - low_x) / max(1, high_x - low_x)
        return right, TOP + HEIGHT * (1 - (log_y - low_y) / max(1, high_y - low_y))

    parts = []
    for tick in np.arange(low_x, high_x + 1):
        right, down = point(tick, low_y)
        parts.append(f'<path d="M{right:.0f} {TOP}V{down:.0f}" stroke="#e5e5e5"/>')
        parts.append(_text(right, down + 16, f"{base**tick:,.0f}", "middle"))
    for tick in np.arange(low_y, high_y + 1):
        right, down = point(low_x, tick)
        parts.append(f'<path d="M{left} {down:.0f}h{WIDTH}" stroke="#e5e5e5"/>')
        parts.append(_text(left - 6, down + 4, f"{base**tick:g}", "end"))
    parts.append(_text(left, TOP - 12, f"{unit}, against {across}{_slope(rows, key)}", "start"))
    for row, log_x, log_y in zip(rows, x, y, strict=True):
        right, down = point(log_x, log_y)
        colour = COLOURS[row["method"]]
        fill = "#fff" if row.get("capped") else colour
        parts.append(
            f'<circle cx="{right:.1f}" cy="{down:.1f}" r="4" fill="{fill}" stroke="{colour}"/>'
        )
    return "".join(parts)


def _slope(rows: Sequence[dict[str, Any]], key: str) -> str:
    own = [row for row in rows if row["method"] == "nouncut" and row.get("images", 0) >= 10_000]
    if len({row["images"] for row in own}) < 2:
        return ""
    exponent = fitted_exponent([row["images"] for row in own], [row[key] for row in own])
    return f"; nouncut grows with M^{exponent:.2f}"


def _legend(rows: Sequence[dict[str, Any]], width: int = 150) -> str:
    parts = []
    for column, name in enumerate(dict.fromkeys(row["method"] for row in rows)):
        across, down = LEFT + width * column, HEIGHT + 2 * TOP
        parts.append(f'<circle cx="{across}" cy="{down}" r="4" fill="{COLOURS[name]}"/>')
        parts.append(_text(across + 10, down + 4, name, "start"))
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{text}</text>'
