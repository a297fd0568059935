"""``nouncut demo``: a first impression, on photographs that nouncut brings."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from nouncut.cli.console import StageBars, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import Output, Quiet, takes_settings
from nouncut.cli.summary import Announcement, show_run
from nouncut.errors import InputError, printable_path

# The report is headed by the name of the folder.
_FOLDER = Path(__file__).parent / "photographs" / "demo"
_CREDITS = _FOLDER.with_name("CREDITS.md")


class DemoImages(NamedTuple):
    """Photographs to try nouncut with."""

    folder: Path
    paths: list[Path]
    attribution: str


@takes_settings("n_clusters", "model", model="mini")
def demo(
    settings: dict[str, Any],
    output: Output = None,
    explore: Annotated[
        bool | None,
        typer.Option(
            "--explore/--no-explore",
            help="Open the groups in the browser. Default: ask, on a terminal.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Cluster photographs that come with nouncut, as a first impression.

    Needs no images of your own and no network.
    """
    with explained_errors("Repeat the command to continue."), StageBars(quiet) as bars:
        from nouncut.workflow import cluster_images

        photographs = demo_images()
        bars.note(f"{len(photographs.paths):,} photographs {photographs.attribution}")
        announcement = Announcement(bars)
        run = cluster_images(
            photographs.folder,
            output=output or "nouncut-runs/demo",
            replace=True,
            on_estimate=announcement,
            progress=bars,
            **settings,
        )
    show_run(run, announcement, quiet=quiet)
    if not quiet:
        results().print("Now your own pictures: nouncut cluster FOLDER")
    if _wants_explorer(explore, quiet):
        with explained_errors():
            from nouncut.explore.serve import serve_run

            serve_run(run.directory, 0, browser=True, say=results().print)


def demo_images() -> DemoImages:
    """Return photographs of animals, buildings, tools and other things."""
    paths = sorted([*_FOLDER.glob("*.jpg"), *_FOLDER.glob("*.webp")])
    if not paths:
        raise InputError(
            f"The demo's photographs are missing in {printable_path(_FOLDER)}. Install nouncut "
            "again."
        )
    return DemoImages(
        _FOLDER,
        paths,
        "from GCompris (public domain, CC0) and Open Images V7 (CC BY 2.0, "
        "https://creativecommons.org/licenses/by/2.0/), made smaller; the photographers are named "
        f"in {printable_path(_CREDITS)}",
    )


def _wants_explorer(explore: bool | None, quiet: bool) -> bool:
    """Return the choice of the user; without one, ask where a browser can be opened."""
    if explore is not None or quiet or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return bool(explore)
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return typer.confirm("Look at the groups in the browser now?", default=True)
