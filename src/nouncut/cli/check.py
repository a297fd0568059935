"""``nouncut check``: whether the files of a run are sound."""

from __future__ import annotations

import typer

from nouncut.cli.console import print_json, results
from nouncut.cli.exit_codes import explained_errors, for_command_line
from nouncut.cli.options import AsJson, RunDirectory
from nouncut.errors import InputError, printable_path


def check(run: RunDirectory, as_json: AsJson = False) -> None:
    """Read all files of a run again, and say which are damaged."""
    with explained_errors():
        from nouncut.runs.check import check_run

        found = check_run(run)
    if as_json:
        print_json(
            {
                "directory": printable_path(found.directory),
                "files": found.n_files,
                "checksums": found.has_checksums,
                "problems": found.problems,
            }
        )
    else:
        for problem in found.problems:
            results().print(for_command_line(problem))
        if not found.has_checksums:
            results().print("The run is of an earlier version and has no checksums.")
        if not found.problems:
            place = printable_path(found.directory)
            results().print(f"{found.n_files} files: nothing is damaged in {place}")
    if found.problems:
        raise typer.Exit(InputError.exit_code)
