"""Make the picture of a report that the README shows.

Run it with ``python scripts/make_screenshot.py RUN [--output docs/report.webp]``; it needs Chromium
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


def photograph(report: Path, is_dark: bool, cluster: int) -> Image.Image:
    """Return the top of a report, with the pointer on an image of a cluster."""
    chromium = os.environ.get("NOUNCUT_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(
            viewport=VIEWPORT,  # type: ignore[arg-type]
            color_scheme="dark" if is_dark else "light",
            device_scale_factor=1.5,
        )
        page.goto(report.absolute().as_uri())
        # Where the images lie on this machine is nobody's business.
        page.evaluate("document.querySelector('.source')?.remove()")
        point_at(page, cluster)
        content = page.screenshot()
        browser.close()
    return Image.open(BytesIO(content)).convert("RGB")


def point_at(page: Page, cluster: int) -> None:
    """Put the pointer on the surest image of a cluster, and let pictures load."""
    page.wait_for_selector("#map-frame[data-zoom]")
    box = page.locator("#map-canvas").bounding_box()
    if box is None:
        raise SystemExit("The report has no map: make the run again.")
    x, y = page.evaluate(f"points.position(camera.view(), report.membersOf({cluster})[0])")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.wait_for_timeout(1000)


def smallest(image: Image.Image) -> bytes:
    """Return the image as WebP, as good as the limit permits."""
    for quality in range(90, 30, -5):
        content = BytesIO()
        image.save(content, "WEBP", quality=quality, method=6)
        if content.tell() <= MAX_BYTES:
            return content.getvalue()
    raise SystemExit(f"The picture cannot be made smaller than {MAX_BYTES:,} bytes.")


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--output", type=Path, default=Path("docs/report.webp"))
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    parser.add_argument("--cluster", type=int, default=0, help="the cluster pointed at")
    arguments = parser.parse_args()
    report = write_report(open_run(arguments.run))
    content = smallest(photograph(report, arguments.dark, arguments.cluster))
    arguments.output.write_bytes(content)
    print(f"{arguments.output}: {len(content):,} bytes")


if __name__ == "__main__":
    main()
