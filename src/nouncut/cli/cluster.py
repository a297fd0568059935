"""``nouncut cluster``: a folder into named groups."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

import typer

from nouncut.cli.console import StageBars
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson, Input, Output, Quiet, takes_settings
from nouncut.cli.summary import Announcement, show_run


@takes_settings()
def cluster(
    path: Input,
    settings: dict[str, Any],
    output: Output = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a run of other settings in --output.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Sort images into meaningful, named groups.

    Writes a run directory with tables and report.html, and prints the groups. Features are kept:
    a second run encodes only what is new, and an interrupted one continues when the command is
    repeated.

    Examples: nouncut cluster photos; nouncut cluster photos -k 12; nouncut cluster photos
    --vocabulary moods.txt
    """
    command = shlex.join(["nouncut", *sys.argv[1:]])
    resume = f"What has been encoded is kept; continue with: {command}"
    with explained_errors(resume), StageBars(quiet) as bars:
        from nouncut.workflow import cluster_images

        announcement = Announcement(bars)
        run = cluster_images(
            path,
            output=output,
            replace=replace,
            on_estimate=announcement,
            progress=bars,
            **settings,
        )
    show_run(run, announcement, quiet=quiet, as_json=as_json)
