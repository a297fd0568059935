"""``nouncut report``: the page of a run, built again."""

from __future__ import annotations

from nouncut.cli.console import StageBars, results
from nouncut.cli.exit_codes import explained_errors, reading_a_run
from nouncut.cli.options import Quiet, RunDirectory


def report(run: RunDirectory, quiet: Quiet = False) -> None:
    """Build report.html of a run again, for example after nouncut was updated."""
    with explained_errors("Repeat the command to go on."), StageBars(quiet) as bars:
        from nouncut.images import printable_path
        from nouncut.report import write_report
        from nouncut.runs import open_run

        with reading_a_run():
            opened = open_run(run)
        page = write_report(opened, progress=bars)
    if not quiet:
        results().print(f"Report: {printable_path(page)}")
