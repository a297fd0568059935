"""Folders of pictures for the pages: the demo's photographs, drawings made by code, and icons."""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from nouncut.cli.demo import demo_images

Painter = Callable[[ImageDraw.ImageDraw, np.random.Generator], None]
SIZE = 160


def photographs(folder: str, most: int = 120, *, are_new: bool = False) -> None:
    """Copy some of the demo's photographs, evenly spread; a fifth of all are kept as new ones."""
    paths = [p for number, p in enumerate(demo_images().paths) if (number % 5 == 4) == are_new]
    Path(folder).mkdir(exist_ok=True)
    for number in range(min(most, len(paths))):
        path = paths[number * len(paths) // min(most, len(paths))]
        shutil.copy(path, Path(folder, path.name))


def drawings(folder: str, per_kind: int = 14) -> None:
    """Draw houses, trees, fish and other things, each time a little differently."""
    Path(folder).mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for name, paint in PAINTERS.items():
        for number in range(per_kind):
            image = Image.new("RGB", (SIZE, SIZE), _colour(rng, 225, 256))
            paint(ImageDraw.Draw(image), rng)
            # The number comes first, so that the order says nothing about the kind.
            image.save(Path(folder, f"{number:02}-{name}.png"))


def icons(folder: str, per_kind: int = 10) -> None:
    """Draw icons of Material Design Icons, which come with the theme of the site."""
    import material
    import resvg_py

    Path(folder).mkdir(exist_ok=True)
    source = Path(material.__file__).parent / "templates/.icons/material"
    for kind in ICONS:
        for path in sorted(source.glob(f"{kind}-*.svg"))[::2][:per_kind]:
            content = resvg_py.svg_to_bytes(
                svg_path=str(path), width=SIZE, height=SIZE, background="#ffffff"
            )
            Image.open(io.BytesIO(bytes(content))).convert("RGB").save(
                Path(folder, f"{path.stem}.png")
            )


ICONS = (
    *("arrow", "battery", "calendar", "car", "cloud", "emoticon", "folder", "home"),
    *("lightbulb", "phone", "printer", "weather", "wifi"),
)


def _colour(rng: np.random.Generator, low: int = 30, high: int = 230) -> tuple[int, int, int]:
    red, green, blue = rng.integers(low, high, 3).tolist()
    return red, green, blue


def _place(rng: np.random.Generator) -> tuple[float, float, float]:
    """Return a centre and a size."""
    x, y = rng.uniform(65, 95, 2)
    return float(x), float(y), float(rng.uniform(38, 58))


def _house(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    x, y, size = _place(rng)
    draw.rectangle((x - size, y - size / 4, x + size, y + size), _colour(rng))
    roof = [(x - size * 1.2, y - size / 4), (x, y - size * 1.1), (x + size * 1.2, y - size / 4)]
    draw.polygon(roof, _colour(rng))
    draw.rectangle((x - size / 5, y + size / 4, x + size / 5, y + size), _colour(rng))


def _tree(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    x, y, size = _place(rng)
    draw.rectangle((x - size / 7, y, x + size / 7, y + size * 1.1), (110, 70, 40))
    green = (30, int(rng.integers(100, 190)), 50)
    for _ in range(9):
        dx, dy = rng.normal(0, size / 3, 2)
        radius = size * 0.45
        centre = (x + dx, y - size / 2 + dy)
        box = (*(c - radius for c in centre), *(c + radius for c in centre))
        draw.ellipse(box, green)


def _fish(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    x, y, size = _place(rng)
    colour = _colour(rng)
    draw.ellipse((x - size, y - size / 2, x + size, y + size / 2), colour)
    tail = [(x + size * 0.8, y), (x + size * 1.4, y - size / 2), (x + size * 1.4, y + size / 2)]
    draw.polygon(tail, colour)
    draw.ellipse((x - size * 0.7, y - size / 6, x - size * 0.5, y + size / 20), "black")


def _flower(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    x, y, size = _place(rng)
    draw.line((x, y, x + rng.uniform(-9, 9), y + size * 1.6), (40, 140, 50), 5)
    petals, colour, radius = int(rng.integers(5, 9)), _colour(rng, 120, 256), size * 0.36
    for petal in range(petals):
        angle = 2 * math.pi * petal / petals
        px, py = x + math.cos(angle) * size / 2, y + math.sin(angle) * size / 2
        draw.ellipse((px - radius, py - radius, px + radius, py + radius), colour)
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), (250, 205, 40))


def _car(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    x, y, size = _place(rng)
    colour = _colour(rng)
    draw.rounded_rectangle((x - size * 1.2, y, x + size * 1.2, y + size * 0.55), 8, colour)
    draw.rounded_rectangle((x - size * 0.7, y - size / 2, x + size * 0.6, y + 4), 10, colour)
    draw.rectangle((x - size * 0.5, y - size / 3, x + size * 0.4, y - 2), (205, 230, 245))
    for wheel in (-0.7, 0.7):
        draw.circle((x + wheel * size, y + size * 0.55), size / 4, (25, 25, 25))


def _face(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    x, y, size = _place(rng)
    draw.circle((x, y), size, (255, int(rng.integers(190, 225)), 60), "black", 2)
    for eye in (-0.4, 0.4):
        draw.circle((x + eye * size, y - size / 4), size / 9, "black")
    start = 0 if rng.random() < 0.5 else 180
    top = y if start == 0 else y + size * 0.25
    draw.arc((x - size / 2, top, x + size / 2, top + size / 2), start, start + 180, "black", 4)


def _mountains(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.rectangle((0, 0, SIZE, SIZE), (150, 200, int(rng.integers(225, 256))))
    for _ in range(4):
        x, height, width = rng.uniform(0, SIZE), rng.uniform(60, 120), rng.uniform(45, 80)
        grey = int(rng.integers(80, 150))
        sides = [(x - width, SIZE), (x, SIZE - height), (x + width, SIZE)]
        draw.polygon(sides, (grey, grey, grey + 15))
        snow = [
            (x - width / 4, SIZE - height * 3 / 4),
            sides[1],
            (x + width / 4, SIZE - height * 3 / 4),
        ]
        draw.polygon(snow, "white")


def _chart(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.line((20, 15, 20, 140, 150, 140), "black", 3)
    for number, height in enumerate(rng.uniform(20, 115, 6)):
        left = 30 + 20 * number
        draw.rectangle((left, 139 - height, left + 13, 138), _colour(rng))


PAINTERS: dict[str, Painter] = {
    "house": _house,
    "tree": _tree,
    "fish": _fish,
    "flower": _flower,
    "car": _car,
    "face": _face,
    "mountains": _mountains,
    "chart": _chart,
}
