"""``nouncut explain``: why an image is in its group."""

from __future__ import annotations

from typing import Annotated

import typer

from nouncut.cli.console import print_json, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson, RunDirectory


def explain(
    run: RunDirectory,
    image: Annotated[
        str,
        typer.Argument(
            metavar="IMAGE",
            help="An image of the run: its path, the end of its path, or its row number.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Say why an image is in its group.

    Shows the images that look most like it, the words that speak for the group, and the same for
    the second choice. Uses only the run directory.
    """
    with explained_errors():
        from nouncut.runs.run import open_run

        found = open_run(run).explain(image)
    if as_json:
        print_json(found.to_json())
    else:
        results().print(str(found))
