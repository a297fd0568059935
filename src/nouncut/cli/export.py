"""``nouncut export``: the clusters of a run for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nouncut.cli.console import notes, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import RunDirectory
from nouncut.errors import printable_path

if TYPE_CHECKING:
    from nouncut.exports.result import ExportResult

_SHOWN_PROBLEMS = 20

Format = Annotated[
    Literal["csv", "jsonl", "parquet", "tree", "fiftyone", "embedding-atlas", "xmp"],
    typer.Option(
        help="csv, jsonl, parquet: a table; tree: a folder per group; fiftyone, "
        "embedding-atlas: data sets for these programs; xmp: keywords in sidecar files for "
        "photo managers."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="The file or folder to write. Default: exports/ in the run.",
        show_default=False,
    ),
]
Link = Annotated[
    Literal["symlink", "hardlink", "copy"] | None,
    typer.Option(
        help="For tree: what the folders hold. Images are never moved. Default: symlink.",
        show_default=False,
    ),
]
Beside = Annotated[
    bool, typer.Option("--beside", help="For xmp: write sidecars beside the images.")
]
Nested = Annotated[
    bool,
    typer.Option(
        "--nested",
        help="For tree and xmp: folders or keywords of groups within those of the groups above.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace a file that exists. Folders are only added to."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")
]


def export(
    run: RunDirectory,
    to: Format = "csv",
    output: Output = None,
    link: Link = None,
    beside: Beside = False,
    nested: Nested = False,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
) -> None:
    """Take the groups of a run elsewhere: tables, folders, other programs.

    Nothing is ever moved, and nothing overwritten unless you say so.
    """
    given = {"link": link, "beside": beside, "nested": nested, "overwrite": overwrite}
    options = {name: value for name, value in given.items() if value}
    with explained_errors("Repeat the command to go on."):
        from nouncut.exports.registry import export_run, plan_export
        from nouncut.runs.run import open_run

        opened = open_run(run)
        if dry_run:
            _show_plan(plan_export(opened, to, output, **options))
        else:
            _show_result(export_run(opened, to, output, **options))


def _show_plan(plan: list[tuple[Path, Path]]) -> None:
    console = results()
    for source, target in plan:
        console.print(f"{printable_path(target)} <- {printable_path(source)}")
    console.print(f"{len(plan):,} files would be written; nothing was.")


def _show_result(result: ExportResult) -> None:
    for problem in result.problems[:_SHOWN_PROBLEMS]:
        notes().print(f"Note: {problem}")
    if len(result.problems) > _SHOWN_PROBLEMS:
        notes().print(f"... and {len(result.problems) - _SHOWN_PROBLEMS:,} more")
    kept = f", {result.n_kept:,} were there already" if result.n_kept else ""
    results().print(f"{result.n_written:,} written{kept}: {printable_path(result.path)}")
    if result.hint:
        results().print(result.hint)
