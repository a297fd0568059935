"""Make the pictures of the stories in docs/explorer.md: the explorer, played in a real browser.

Run it with ``python scripts/make_story_pictures.py RUN [--output docs/stories]``. The run is
copied and stays as it is. It needs Chromium (``apt install chromium``, or
``NOUNCUT_CHROMIUM=path``) and ``pip install playwright``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from make_screenshot import ARGUMENTS, VIEWPORT, compressed

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")


@contextmanager
def explorer(run: Path) -> Iterator[str]:
    """Start the explorer, and yield its address."""
    command = [sys.executable, "-m", "nouncut", "explore", str(run), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = (ADDRESS.search(line) for line in iter(process.stdout.readline, ""))
        yield next(match[0] for match in found if match)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def find(page: Page) -> None:
    """Search for birds."""
    page.fill("#search", "bird")
    page.wait_for_selector("#found-groups .chip")


def move(page: Page) -> None:
    """Select five pictures of a group, and ask where to move them."""
    page.click("#tree [data-cluster] >> nth=1")
    tiles = page.locator("#tiles .tile")
    tiles.nth(1).click()
    tiles.nth(5).click(modifiers=["Shift"])
    page.click("#move-chosen")


def same(page: Page) -> None:
    """Ask whether two groups are the same."""
    page.click("#ask")
    page.wait_for_selector("#asker[open] .tile")


STORIES: dict[str, Callable[[Page], None]] = {"find": find, "move": move, "same": same}


def play(run: Path, story: Callable[[Page], None], is_dark: bool) -> Image.Image:
    """Return what a story ends with."""
    with explorer(run) as address, sync_playwright() as playwright:
        chromium = os.environ.get("NOUNCUT_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(
            viewport=VIEWPORT,  # type: ignore[arg-type]
            color_scheme="dark" if is_dark else "light",
            device_scale_factor=1.5,
        )
        page.goto(address)
        page.wait_for_selector("#tree [data-cluster]")
        story(page)
        page.wait_for_timeout(2000)
        content = page.screenshot()
        browser.close()
    return Image.open(BytesIO(content)).convert("RGB")


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--output", type=Path, default=Path("docs/stories"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(shutil.copytree(arguments.run, Path(folder, "run")))
        for name, story in STORIES.items():
            content = compressed(play(run, story, is_dark=name == "move"))
            (arguments.output / f"{name}.webp").write_bytes(content)
            print(f"{name}.webp: {len(content):,} bytes")


if __name__ == "__main__":
    main()
