"""``nouncut report``: the page of a run, built again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nouncut.cli.console import StageBars, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import Quiet, RunDirectory


def report(
    run: RunDirectory,
    names: Annotated[
        Path | None,
        typer.Option(
            help="Names of groups that were edited in the page and saved there; exports use them "
            "too.",
            show_default=False,
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Save the pictures of the method to this folder, as SVG and PNG.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Build report.html of a run again, for example with names that you have edited in it."""
    with explained_errors("Repeat the command to continue."), StageBars(quiet) as bars:
        from nouncut.errors import printable_path
        from nouncut.report.figures import save_figures
        from nouncut.report.write import write_report
        from nouncut.runs.editing import edit_run, plan_rename
        from nouncut.runs.renames import read_names
        from nouncut.runs.run import open_run

        opened = open_run(run)
        if names is not None:
            known = opened.names_by_cluster
            new = read_names(names, opened.manifest, known)
            if any(known[number] != name for number, name in new.items()):
                edit_run(opened, plan_rename(new))
                opened = open_run(run)
        page = write_report(opened, progress=bars)
        saved = [] if figures is None else save_figures(opened, figures)
    if not quiet:
        results().print(f"Report: {printable_path(page)}")
        for path in saved:
            results().print(f"Figure: {printable_path(path)}")
