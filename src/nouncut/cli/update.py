"""``nouncut update``: new images into a run, without losing what was decided."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nouncut.cli.console import StageBars, notes, print_json, results
from nouncut.cli.exit_codes import explained_errors, for_command_line
from nouncut.cli.options import AsJson, Quiet, RunDirectory
from nouncut.errors import printable_path

if TYPE_CHECKING:
    from nouncut.runs.update import Update

More = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH...",
        help="More folders, images, patterns or list files, which belong to the run from now on.",
        show_default=False,
    ),
]


def update(
    run: RunDirectory,
    path: More = None,
    new_groups: Annotated[
        bool,
        typer.Option(
            "--new-groups", help="Make groups of new images that fit no group but belong together."
        ),
    ] = False,
    recluster: Annotated[
        bool,
        typer.Option(
            "--recluster",
            help="Cluster all images again; groups that match earlier ones keep number, name and "
            "edits.",
        ),
    ] = False,
    allow_missing: Annotated[
        bool,
        typer.Option("--allow-missing", help="Take images of folders that are not there as gone."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and stop.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Bring a run up to date with its folders, and say what changed.

    New images join the groups that they fit best; images that are gone leave theirs. Groups keep
    their numbers, names and edits.

    Examples: nouncut update nouncut-runs/photos; nouncut update RUN "new photos" --new-groups
    """
    command = shlex.join(["nouncut", *sys.argv[1:]])
    resume = f"What has been encoded is kept; continue with: {command}"
    with explained_errors(resume), StageBars(quiet) as bars:
        from nouncut.workflow import update_run

        found = update_run(
            run,
            path or (),
            new_groups=new_groups,
            recluster=recluster,
            allow_missing=allow_missing,
            dry_run=dry_run,
            progress=bars,
        )
    if as_json:
        print_json(_summary(found, dry_run))
    elif not quiet:
        _show(found, dry_run)


def _summary(found: Update, dry_run: bool) -> dict[str, Any]:
    return {
        "directory": str(found.run.directory.absolute()),
        "report": str(found.run.report.absolute()),
        "dry_run": dry_run,
        "n_images": len(found.run.labels),
        "n_clusters": len(found.run.clusters),
        "changes": found.changes.to_json(),
    }


def _show(found: Update, dry_run: bool) -> None:
    from nouncut.runs.changes import describe_changes

    console, run = results(), found.run
    if not found.changes:
        console.print("Nothing is new.")
        return
    for sentence in describe_changes(found.changes):
        console.print(for_command_line(sentence))
    if dry_run:
        console.print("Nothing was written.")
        return
    for file in run.skipped[:5]:
        notes().print(f"Skipped {printable_path(file.path)}: {file.reason}")
    console.print(f"{len(run.labels):,} images in {len(run.clusters):,} groups.")
    console.print(f"Report: {printable_path(run.report)}")
