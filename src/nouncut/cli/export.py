"""``nouncut export``: the clusters of a run for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nouncut.cli.console import notes, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import RunDirectory

_SHOWN_PROBLEMS = 20

Format = Literal["csv", "jsonl", "parquet", "tree", "fiftyone", "embedding-atlas", "xmp"]


def export(
    run: RunDirectory,
    to: Annotated[
        Format,
        typer.Option(
            help="csv, jsonl, parquet: a table; tree: a folder per cluster; fiftyone, "
            "embedding-atlas: data sets for these programs; xmp: keywords in sidecar files for "
            "photo managers."
        ),
    ] = "csv",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The file or folder to write. Default: exports/ in the run.",
            show_default=False,
        ),
    ] = None,
    link: Annotated[
        Literal["symlink", "hardlink", "copy"] | None,
        typer.Option(
            help="For tree: what stands in the folders. Images are never moved. Default: symlink.",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        bool, typer.Option("--beside", help="For xmp: write sidecars beside the images.")
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace the file that is there. Folders are only added to."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")
    ] = False,
) -> None:
    """Take the clusters of a run elsewhere: tables, folders, other programs.

    Nothing is ever moved, and nothing overwritten unless you say so.
    """
    given = {"link": link, "beside": beside, "overwrite": overwrite}
    options = {name: value for name, value in given.items() if value}
    with explained_errors("Repeat the command to continue."):
        from nouncut.exports.registry import EXPORTS, export_run, plan_export
        from nouncut.runs.run import open_run

        for name in set(options) - set(EXPORTS[to].options):
            raise typer.BadParameter(f"It is not for {to}.", param_hint=f"--{name}")
        opened = open_run(run)
        if dry_run:
            _show_plan(plan_export(opened, to, output, **options))
        else:
            _show_result(export_run(opened, to, output, **options))


def _show_plan(plan: list[tuple[Path, Path]]) -> None:
    from nouncut.errors import printable_path

    console = results()
    for source, target in plan:
        console.print(f"{printable_path(target)} <- {printable_path(source)}")
    console.print(f"{len(plan):,} files would be written; nothing was.")


def _show_result(result: Any) -> None:
    from nouncut.errors import printable_path

    for problem in result.problems[:_SHOWN_PROBLEMS]:
        notes().print(f"Note: {problem}")
    if len(result.problems) > _SHOWN_PROBLEMS:
        notes().print(f"... and {len(result.problems) - _SHOWN_PROBLEMS:,} more")
    kept = f", {result.n_kept:,} were there already" if result.n_kept else ""
    results().print(f"{result.n_written:,} written{kept}: {printable_path(result.path)}")
    if result.hint:
        results().print(result.hint)
