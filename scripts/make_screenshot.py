"""Make the screenshot of a report in the README.

Run it with ``python scripts/make_screenshot.py RUN [--output docs/report.webp]``. It needs Chromium
(``apt install chromium``, or ``NOUNCUT_CHROMIUM=path``) and ``pip install playwright``.
"""

from __future__ import annotations

import argparse
import os
import shutil
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from nouncut.report.write import write_report
from nouncut.runs.run import open_run

MAX_BYTES = 400_000
VIEWPORT = {"width": 1280, "height": 800}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def screenshot(report: Path, is_dark: bool, cluster: int) -> Image.Image:
    """Return the top of a report, with the pointer on an image of the given cluster."""
    chromium = os.environ.get("NOUNCUT_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(
            viewport=VIEWPORT,  # type: ignore[arg-type]
            color_scheme="dark" if is_dark else "light",
            device_scale_factor=1.5,
        )
        page.goto(report.absolute().as_uri())
        # Folder names of this machine do not belong in the README.
        page.evaluate("document.querySelector('.source')?.remove()")
        point_at(page, cluster)
        content = page.screenshot()
        browser.close()
    return Image.open(BytesIO(content)).convert("RGB")


def point_at(page: Page, cluster: int) -> None:
    """Move the pointer to the most certain image of a cluster, and wait for thumbnails."""
    page.wait_for_selector("#map-frame[data-zoom]")
    box = page.locator("#map-canvas").bounding_box()
    if box is None:
        raise SystemExit("The report has no map: run `nouncut cluster` again.")
    x, y = page.evaluate(f"points.position(camera.view(), report.membersOf({cluster})[0])")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.wait_for_timeout(1000)


def compressed(image: Image.Image) -> bytes:
    """Return the image as WebP in the best quality within the size limit."""
    for quality in range(90, 30, -5):
        content = BytesIO()
        image.save(content, "WEBP", quality=quality, method=6)
        if content.tell() <= MAX_BYTES:
            return content.getvalue()
    raise SystemExit(f"The screenshot does not fit into {MAX_BYTES:,} bytes.")


def main() -> None:
    """Write the screenshot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--output", type=Path, default=Path("docs/report.webp"))
    parser.add_argument("--dark", action="store_true", help="use the dark theme")
    parser.add_argument("--cluster", type=int, default=0, help="number of the cluster to point at")
    arguments = parser.parse_args()
    report = write_report(open_run(arguments.run))
    content = compressed(screenshot(report, arguments.dark, arguments.cluster))
    arguments.output.write_bytes(content)
    print(f"{arguments.output}: {len(content):,} bytes")


if __name__ == "__main__":
    main()
