"""``nouncut cluster``: a folder into named groups."""

from __future__ import annotations

import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

import typer

from nouncut.cli.console import StageBars, notes, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson, Quiet, Sources, SourcesOutput, takes_settings
from nouncut.cli.summary import Announcement, show_run
from nouncut.errors import ParameterError, printable_path

_ON_CLUSTER = "On a Dask cluster"


@takes_settings()
def cluster(
    path: Sources,
    settings: dict[str, Any],
    output: SourcesOutput = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a run of other settings in --output.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address of a Dask scheduler, such as tcp://HOST:8786; local:4 starts four "
            "processes here.",
            rich_help_panel=_ON_CLUSTER,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an unfinished run in --output; nothing that is finished is repeated.",
            rich_help_panel=_ON_CLUSTER,
        ),
    ] = False,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Parts that the images are split into: with more, tasks need less memory. "
            "Default: as many as the memory of a worker asks for.",
            show_default=False,
            rich_help_panel=_ON_CLUSTER,
        ),
    ] = None,
    coarsen: Annotated[
        str,
        typer.Option(
            metavar="N|auto|never",
            help="Group images into N small clusters first, cut those, and place every image "
            "among them. auto: only if the cluster has too little memory for all images.",
            rich_help_panel=_ON_CLUSTER,
        ),
    ] = "auto",
    cache: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|URL",
            help="Keep the features of files here for other runs, until the files change.",
            show_default=False,
            rich_help_panel=_ON_CLUSTER,
        ),
    ] = None,
) -> None:
    """Sort images into meaningful, named groups.

    Writes a run directory with tables and report.html, and prints the groups. Features are kept:
    a second run encodes only what is new, and an interrupted one continues when the command is
    repeated.

    Examples: nouncut cluster photos; nouncut cluster photos -k 12; nouncut cluster photos
    --vocabulary moods.txt; nouncut cluster features/ --scheduler local:4 --output run
    """
    command = shlex.join(["nouncut", *sys.argv[1:]])
    kept = "What has been encoded is kept; continue with: "
    if scheduler is not None:
        kept = "What is finished is kept; continue with: "
        command += "" if resume else " --resume"
    with explained_errors(kept + command), StageBars(quiet) as bars:
        from nouncut.workflow import cluster_images

        announcement = Announcement(bars)
        began = datetime.now(UTC).replace(microsecond=0)
        with _cluster_of(scheduler, quiet) as client:
            run = cluster_images(
                path,
                output=output,
                replace=replace,
                on_estimate=announcement,
                progress=bars,
                client=client,
                resume=resume,
                partitions=partitions,
                cache=cache,
                coarsen=_parse_coarsen(coarsen),
                **settings,
            )
    if scheduler is not None:
        announcement.end_on_cluster(run, began)
    show_run(run, announcement, quiet=quiet, as_json=as_json)
    if output is not None and "://" in output and not quiet and not as_json:
        results().print(
            f"Run: {printable_path(output)}, with a copy in {printable_path(run.directory)}"
        )


def _parse_coarsen(text: str) -> int | Literal["auto", "never"]:
    if text in ("auto", "never"):
        return cast(Literal["auto", "never"], text)
    if not text.isdecimal():
        raise ParameterError(f"`coarsen` must be a number, auto or never; got {text}.")
    return int(text)


def _cluster_of(scheduler: str | None, quiet: bool) -> AbstractContextManager[Any]:
    """Connect to a Dask cluster, if there is to be one."""
    if scheduler is None:
        return nullcontext()
    try:
        from nouncut.distributed.client import connect
    except ImportError as error:
        raise ParameterError(
            "`scheduler` needs Dask: pip install 'nouncut[distributed]'."
        ) from error
    return connect(scheduler, announce=None if quiet else notes().print)
