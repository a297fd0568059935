"""The command and its sub-commands."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from nouncut.cli.ablate import ablate
from nouncut.cli.bench import bench
from nouncut.cli.cache import cache
from nouncut.cli.check import check
from nouncut.cli.cluster import cluster
from nouncut.cli.demo import demo
from nouncut.cli.edit import edit
from nouncut.cli.exit_codes import HELP, explained_errors
from nouncut.cli.explain import explain
from nouncut.cli.explore import explore
from nouncut.cli.export import export
from nouncut.cli.models import models
from nouncut.cli.predict import predict
from nouncut.cli.report import report
from nouncut.cli.search import search
from nouncut.cli.update import update
from nouncut.cli.version import version_lines

app = typer.Typer(
    name="nouncut",
    help="Sort a folder of unlabelled images into meaningful, named groups. Start with: nouncut "
    "cluster FOLDER",
    epilog=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(cluster, update, explore, predict, search, explain, export, report),
    *(check, demo, models, bench, ablate),
):
    app.command()(command)
app.add_typer(cache, name="cache")
app.add_typer(edit, name="edit")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo("\n".join(version_lines()))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the versions of nouncut, Python, the embedded model and its runtime.",
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command."""
    # Waiting threads of a model should not spin; OpenMP reads this when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # The terminal's encoding may lack characters of a file name.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with explained_errors():
        # The same name for ``python -m nouncut``.
        app(prog_name="nouncut")
