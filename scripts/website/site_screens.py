"""Screenshots for the gallery: windows of programs that code has drawn, each a little different."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

Colour = tuple[int, int, int]
Painter = Callable[[ImageDraw.ImageDraw, np.random.Generator], None]
WIDTH, HEIGHT, BAR = 320, 220, 18
INK, PAPER, NIGHT = (40, 44, 52), (255, 255, 255), (30, 33, 40)
BRIGHT: tuple[Colour, ...] = (
    *((97, 175, 239), (152, 195, 121), (224, 108, 117)),
    *((229, 192, 123), (198, 120, 221), (171, 178, 191)),
)
WORDS = (
    "the photo of a river and its old bridge was sent to all friends who had asked for it last "
    "week please answer before noon we meet at the station with tickets maps lunch camera"
)
CODE = "def return for in if else import class self print range open with as None True"


def screenshots(folder: str, per_kind: int = 12) -> None:
    """Draw windows of terminals, editors, chats and other programs."""
    Path(folder).mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for name, paint in PAINTERS.items():
        for number in range(per_kind):
            image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
            draw = ImageDraw.Draw(image)
            paint(draw, rng)
            _title_bar(draw, rng)
            # The number comes first, so that the order says nothing about the kind.
            image.save(Path(folder, f"{number:02}-{name}.png"))


def _title_bar(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    grey = int(rng.integers(200, 236))
    draw.rectangle((0, 0, WIDTH, BAR), (grey, grey, grey))
    for number, colour in enumerate(((237, 106, 94), (245, 191, 79), (98, 197, 84))):
        draw.circle((11 + 14 * number, BAR / 2), 4.5, colour)


def _text(rng: np.random.Generator, n_words: int) -> str:
    return " ".join(rng.choice(WORDS.split(), n_words))


def _terminal(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.rectangle((0, 0, WIDTH, HEIGHT), (12, 12, 16))
    for line in range(int(rng.integers(8, 15))):
        y = BAR + 5 + 13 * line
        if rng.random() < 0.35:
            draw.text((6, y), "you@home:~$", (110, 220, 120))
            draw.text((84, y), _text(rng, 3), (235, 235, 235))
        else:
            draw.text((6, y), _text(rng, int(rng.integers(3, 9))), (190, 190, 190))


def _editor(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.rectangle((0, 0, WIDTH, HEIGHT), NIGHT)
    draw.rectangle((0, 0, 62, HEIGHT), (38, 42, 50))
    for line in range(14):
        y = BAR + 5 + 14 * line
        draw.text((6, y), _text(rng, 1), (120, 126, 138))
        draw.text((68, y), f"{line + 1:2}", (92, 99, 112))
        x = 88 + 16 * int(rng.integers(0, 4))
        for word in rng.choice(CODE.split(), int(rng.integers(0, 5))):
            draw.text((x, y), word, BRIGHT[rng.integers(len(BRIGHT))])
            x += 7 * len(word) + 4


def _letter(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.rectangle((0, 0, WIDTH, HEIGHT), (205, 208, 212))
    draw.rectangle((50, BAR + 12, 270, HEIGHT), PAPER)
    draw.text((66, BAR + 24), _text(rng, 3).title(), INK, font_size=15)
    for line in range(11):
        draw.text((66, BAR + 50 + 13 * line), _text(rng, 6)[:32], (70, 70, 70))


def _table(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.rectangle((0, BAR, WIDTH, BAR + 16), (33, 115, 70))
    draw.rectangle((0, BAR + 16, WIDTH, BAR + 31), (232, 234, 237))
    width = int(rng.integers(44, 66))
    for row in range(14):
        y = BAR + 31 + 14 * row
        draw.line((0, y, WIDTH, y), (214, 216, 220))
        for column in range(WIDTH // width + 1):
            draw.line((column * width, BAR + 16, column * width, HEIGHT), (214, 216, 220))
            if rng.random() < 0.75:
                draw.text((column * width + 4, y), f"{rng.uniform(0, 999):.1f}", INK)


def _chat(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.rectangle((0, 0, WIDTH, HEIGHT), (229, 221, 213))
    y = BAR + 8
    while y < HEIGHT - 20:
        text, is_mine = _text(rng, int(rng.integers(2, 7))), rng.random() < 0.5
        width = draw.textlength(text) + 16
        x = WIDTH - width - 8 if is_mine else 8
        colour = (220, 248, 198) if is_mine else PAPER
        draw.rounded_rectangle((x, y, x + width, y + 20), 8, colour)
        draw.text((x + 8, y + 4), text, INK)
        y += 26


def _calendar(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.text((10, BAR + 4), f"2026-{int(rng.integers(1, 13)):02}", INK, font_size=16)
    width, height, first = WIDTH / 7, 34, int(rng.integers(0, 7))
    for cell in range(35):
        x, y = (cell % 7) * width, BAR + 28 + (cell // 7) * height
        draw.rectangle((x, y, x + width, y + height), outline=(205, 208, 214))
        if 0 <= cell - first < 31:
            draw.text((x + 4, y + 2), str(cell - first + 1), (90, 90, 90))
        if rng.random() < 0.35:
            colour = BRIGHT[rng.integers(len(BRIGHT))]
            draw.rounded_rectangle((x + 3, y + 17, x + width - 4, y + 29), 3, colour)


def _street_map(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    draw.rectangle((0, 0, WIDTH, HEIGHT), (240, 237, 229))
    for _ in range(4):
        x, y = rng.uniform(0, WIDTH), rng.uniform(BAR, HEIGHT)
        draw.ellipse((x - 40, y - 25, x + 40, y + 25), (200, 225, 175))
    river = [(x, 120 + 50 * np.sin(x / 60 + rng.uniform(0, 1))) for x in range(-10, WIDTH + 30, 20)]
    draw.line(river, (165, 205, 230), 14)
    for width, colour in ((9, (255, 255, 255)), (6, (250, 215, 120))):
        for _ in range(9 if width > 6 else 3):
            ends = rng.uniform(-60, WIDTH + 60, 2), rng.uniform(0, HEIGHT, 2)
            draw.line((ends[0][0], ends[1][0], ends[0][1], ends[1][1]), colour, width)
    x, y = rng.uniform(60, 260), rng.uniform(70, 180)
    draw.polygon([(x - 8, y - 14), (x + 8, y - 14), (x, y + 6)], (220, 50, 47))
    draw.circle((x, y - 16), 9, (220, 50, 47))


def _dialog(draw: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    shade = int(rng.integers(60, 130))
    draw.rectangle((0, 0, WIDTH, HEIGHT), (shade, shade + 25, shade + 60))
    draw.rounded_rectangle((45, 62, 275, 178), 8, (244, 244, 246), (150, 150, 150))
    draw.text((60, 74), _text(rng, 2).capitalize() + "?", INK, font_size=15)
    for line in range(2):
        draw.text((60, 98 + 15 * line), _text(rng, 5)[:32], (90, 90, 90))
    draw.rounded_rectangle((140, 146, 195, 168), 5, (222, 223, 227))
    draw.rounded_rectangle((203, 146, 262, 168), 5, (38, 110, 220))
    draw.text((150, 151), "Cancel", INK)
    draw.text((225, 151), "OK", PAPER)


PAINTERS: dict[str, Painter] = {
    "terminal": _terminal,
    "editor": _editor,
    "letter": _letter,
    "table": _table,
    "chat": _chat,
    "calendar": _calendar,
    "map": _street_map,
    "dialog": _dialog,
}
