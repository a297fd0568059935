"""Drawings of a few simple shapes, rendered as SVG or as pixels."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nouncut.report.said import Number, Said, attributes, said_in

# The page's colour variables, with their values in the light theme.
COLOURS = {
    "background": "#fcfcfb",
    "ink": "#1b1c1e",
    "quiet": "#62666d",
    "line": "#d9d9d4",
    "accent": "#2c5f8d",
}
# Pixels are drawn at twice the size and then averaged, so that edges are smooth.
_SMOOTHING = 2
# Around a drawing that is saved as a file.
_MARGIN = 16.0
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


@dataclass(frozen=True)
class Line:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    colour: str = "ink"
    width: float = 1.0


@dataclass(frozen=True)
class Bar:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str = "accent"


@dataclass(frozen=True)
class Dot:
    """A filled circle."""

    x: float
    y: float
    radius: float
    colour: str = "accent"


@dataclass(frozen=True)
class Text:
    """A line of text."""

    x: float
    y: float
    text: str
    colour: str = "quiet"
    anchor: Literal["start", "middle", "end"] = "start"
    size: float = 12.0


@dataclass(frozen=True, eq=False)
class Cells:
    """A square matrix of cells, from transparent (0) to full colour (255)."""

    x: float
    y: float
    side: float
    strength: NDArray[np.uint8]
    name: str
    colour: str = "ink"


Shape = Line | Bar | Dot | Text | Cells


@dataclass(frozen=True)
class Drawing:
    """Shapes within a rectangle."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


def to_svg(drawing: Drawing, label: str, *, for_page: bool = True) -> str:
    """Return a drawing as SVG: coloured by the page, or with a margin and fixed colours."""
    edge = 0.0 if for_page else _MARGIN
    width, height = drawing.width + 2 * edge, drawing.height + 2 * edge
    sides = _attributes(width=width, height=height)
    corner = _number(0.0 - edge)
    view = f"{corner} {corner} {_number(width)} {_number(height)}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}"'
        f'{"" if for_page else f" {sides}"} role="img"{_label(label)}>'
    ]
    if not for_page:
        lines.append(f'<rect x="{corner}" y="{corner}" {sides} fill="{COLOURS["background"]}"/>')
    lines += [_shape_svg(shape, for_page) for shape in drawing.shapes]
    return "\n".join([*lines, "</svg>"])


def to_picture(drawing: Drawing, scale: float = 3.0) -> Image.Image:
    """Return a drawing as pixels, in fixed colours and with a margin."""
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    size = (round(width * scale), round(height * scale))
    picture = Image.new("RGB", (size[0] * _SMOOTHING, size[1] * _SMOOTHING), COLOURS["background"])
    for shape in drawing.shapes:
        _paint(picture, moved(shape, _MARGIN, _MARGIN), scale * _SMOOTHING)
    return picture.resize(size, Image.Resampling.BOX)


def moved(shape: Shape, right: float, down: float) -> Shape:
    """Return a shape moved right and down."""
    if isinstance(shape, Line):
        return replace(shape, points=tuple((x + right, y + down) for x, y in shape.points))
    return replace(shape, x=shape.x + right, y=shape.y + down)


def _shape_svg(shape: Shape, for_page: bool) -> str:
    colour = _colour(shape.colour, for_page)
    if isinstance(shape, Line):
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in shape.points)
        return (
            f'<polyline points="{points}" fill="none" stroke="{colour}" '
            f'stroke-width="{_number(shape.width)}" stroke-linejoin="round"/>'
        )
    if isinstance(shape, Bar):
        box = _attributes(x=shape.x, y=shape.y, width=shape.width, height=shape.height)
        return f'<rect {box} fill="{colour}"/>'
    if isinstance(shape, Dot):
        return f'<circle {_attributes(cx=shape.x, cy=shape.y, r=shape.radius)} fill="{colour}"/>'
    if isinstance(shape, Text):
        position = _attributes(x=shape.x, y=shape.y, font_size=shape.size)
        text = shape.text
        marks = attributes(text.marks) if for_page and isinstance(text, Said | Number) else ""
        return (
            f'<text {position} font-family="{_FONT}" text-anchor="{shape.anchor}" '
            f'fill="{colour}"{marks}>{_escaped(text)}</text>'
        )
    return _cells_svg(shape, colour)


def _cells_svg(cells: Cells, colour: str) -> str:
    """Return a coloured rectangle with the cells as its mask, so that the theme can recolour it."""
    file = io.BytesIO()
    Image.fromarray(cells.strength).save(file, "PNG", optimize=True)
    data = b64encode(file.getvalue()).decode()
    box = _attributes(x=cells.x, y=cells.y, width=cells.side, height=cells.side)
    name = _escaped(cells.name)
    return (
        f'<mask id="{name}"><image {box} image-rendering="pixelated" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{data}"/></mask>'
        f'<rect {box} fill="{colour}" mask="url(#{name})"/>'
    )


def _paint(picture: Image.Image, shape: Shape, scale: float) -> None:
    brush = ImageDraw.Draw(picture)
    colour = _colour(shape.colour, for_page=False)
    if isinstance(shape, Line):
        points = [(x * scale, y * scale) for x, y in shape.points]
        brush.line(points, fill=colour, width=max(1, round(shape.width * scale)), joint="curve")
    elif isinstance(shape, Bar):
        if shape.width > 0 and shape.height > 0:
            right, bottom = shape.x + shape.width, shape.y + shape.height
            corners = (shape.x * scale, shape.y * scale, right * scale, bottom * scale)
            brush.rectangle(corners, fill=colour)
    elif isinstance(shape, Dot):
        brush.circle((shape.x * scale, shape.y * scale), shape.radius * scale, fill=colour)
    elif isinstance(shape, Text):
        font = ImageFont.load_default(shape.size * scale)
        start, anchor = (shape.x * scale, shape.y * scale), _ANCHORS[shape.anchor]
        brush.text(start, _printable(shape.text), fill=colour, font=font, anchor=anchor)
    else:
        side = round(shape.side * scale)
        mask = Image.fromarray(shape.strength).resize((side, side), Image.Resampling.NEAREST)
        picture.paste(colour, (round(shape.x * scale), round(shape.y * scale)), mask)


def _colour(name: str, for_page: bool) -> str:
    if name not in COLOURS:
        return name
    return f"var(--{name}, {COLOURS[name]})" if for_page else COLOURS[name]


def _attributes(**numbers: float) -> str:
    return " ".join(f'{key.replace("_", "-")}="{_number(n)}"' for key, n in numbers.items())


def _number(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _printable(text: str) -> str:
    """Replace characters that XML or a font cannot take."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _label(label: str) -> str:
    if isinstance(label, Said):
        return said_in(aria_label=label)
    return f' aria-label="{_escaped(label)}"'


def _escaped(text: str) -> str:
    return escape(_printable(text))
