"""``nouncut explore``: look at a run in the browser, search it and mend its groups."""

from __future__ import annotations

from typing import Annotated

import typer

from nouncut.cli.console import results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import RunDirectory


def explore(
    run: RunDirectory,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port of the page. Default: a free one."),
    ] = 0,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Open the page in the browser."),
    ] = True,
) -> None:
    """Open a run in the browser: look, search, merge, split and move, with undo.

    The page is served from this machine to this machine only: nothing leaves it, and only the
    browser that opens the printed address first can use it. Edits are saved at once, in the run
    directory; image files are never changed. Press Ctrl+C to stop; everything is there when you
    open the run again.

    Examples: nouncut explore nouncut-runs/photos; nouncut explore RUN --no-browser --port 8000
    """
    with explained_errors():
        from nouncut.explore.serve import serve_run

        serve_run(run, port, browser=browser, say=results().print)
