"""Pictures of runs for the pages. What these functions print becomes part of the page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from html import escape
from pathlib import Path

from PIL import Image, ImageOps

import nouncut
from nouncut.cli.demo import demo_images
from run_page import run_bash

# The site takes all files in this folder.
SHOWN = Path("shown")
HOME = "/home/you"
TILE, PER_ROW = 96, 6


def show_groups(run: str, name: str, most: int = 8) -> None:
    """Print a table of the largest groups with their most typical pictures."""
    opened = nouncut.open_run(run)
    clusters = opened.clusters.to_pylist()[:most]
    paths = opened.assignments["path"].to_pylist()
    print("| group | pictures | the most typical ones |\n|---|---|---|")
    for cluster in clusters:
        title = label(cluster["name"])
        file = strip([paths[row] for row in cluster["exemplars"]], f"{name}-{cluster['cluster']}")
        print(f"| {title} | {cluster['size']} | ![Pictures of the group {title}]({file}) |")
    left = len(opened.clusters) - len(clusters)
    if left > 0:
        print(f"| and {left} more | | |")


def show_found(paths: list[str], name: str, what: str) -> None:
    """Print a row of pictures."""
    print(f"![{label(what)}]({strip(paths, name)})")


def show_report(run: str, name: str) -> None:
    """Put the report of a run into the site, and print a frame with it."""
    text = Path(run, "report.html").read_text("utf-8").replace(os.getcwd(), HOME)
    SHOWN.mkdir(exist_ok=True)
    (SHOWN / f"{name}.html").write_text(text, "utf-8")
    address = f"{Path.cwd().name}/{name}.html"
    print(f'<iframe class="report" src="{address}" title="Report: {name}" loading="lazy"></iframe>')
    print(f"\n[Open this report on a page of its own]({address}){{ .md-button }}")


def show_command(*words: object) -> None:
    """Run a command that depends on the results above, and print it with what it says."""
    command = shlex.join(map(str, words))
    print(f"```bash\n{command}\n```\n\n``` {{ .text .output }}\n{run_bash(command).strip()}\n```")


def show_credits() -> None:
    """Print the licence of the demo's photographs, with a link to the list of photographers."""
    text = escape(demo_images().attribution, quote=False)
    # The file that names them; slashes of an address follow a colon, a letter or a slash.
    for file in map(Path, re.findall(r"(?<![:\w/])/\S*\.md\b", text)):
        SHOWN.mkdir(exist_ok=True)
        shutil.copy(file, SHOWN / "credits.txt")
        text = text.replace(str(file), f"[{file.name}]({Path.cwd().name}/credits.txt)")
    print(f"Photographs: {text}.")


def strip(paths: list[str], name: str) -> str:
    """Write a row of square thumbnails, and return its address."""
    row = Image.new("RGB", (TILE * PER_ROW, TILE), "white")
    for number, path in enumerate(paths[:PER_ROW]):
        with Image.open(path) as image:
            tile = ImageOps.fit(ImageOps.exif_transpose(image).convert("RGB"), (TILE - 2, TILE - 2))
        row.paste(tile, (number * TILE + 1, 1))
    row = row.crop((0, 0, TILE * min(len(paths), PER_ROW), TILE))
    SHOWN.mkdir(exist_ok=True)
    row.save(SHOWN / f"{name}.webp", quality=80)
    return f"{Path.cwd().name}/{name}.webp"


def label(name: str) -> str:
    """Return a name of a group for a table in Markdown."""
    return escape(name).replace("|", "&#124;").replace("[", "&#91;")
