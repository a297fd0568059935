"""``nouncut export``: the clusters of a run for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nouncut.cli.console import notes, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import RunDirectory, parse_group
from nouncut.errors import printable_path

if TYPE_CHECKING:
    from nouncut.exports.result import ExportResult

_SHOWN_PROBLEMS = 20
_SHOWN_FILES = 5

Format = Annotated[
    Literal["csv", "jsonl", "parquet", "tree", "album", "xmp", "fiftyone", "embedding-atlas"],
    typer.Option(
        help="csv, jsonl, parquet: a table; tree: a folder per group; album: web pages with the "
        "pictures, to share; xmp: keywords in sidecar files for photo managers; fiftyone, "
        "embedding-atlas: data sets for these programs."
    ),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        help="Export only this group, by number or name; repeat it for several.",
        show_default=False,
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
Program = Annotated[
    Literal["digikam", "darktable", "lightroom"] | None,
    typer.Option(
        "--for",
        help="For xmp: the program that reads the sidecars. digikam and darktable: IMG.jpg.xmp; "
        "lightroom: IMG.xmp. Default: digikam.",
        show_default=False,
    ),
]
Title = Annotated[
    str | None,
    typer.Option(help="For album: its title. Default: the name of the folder.", show_default=False),
]
WithoutNames = Annotated[
    bool, typer.Option("--without-names", help="For album: leave out the names of the files.")
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
    typer.Option("--overwrite", help="Replace a file that exists."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")
]


def export(
    run: RunDirectory,
    to: Format = "csv",
    output: Output = None,
    group: Groups = None,
    link: Link = None,
    nested: Nested = False,
    beside: Beside = False,
    program: Program = None,
    title: Title = None,
    without_names: WithoutNames = False,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
) -> None:
    """Take the groups of a run elsewhere: tables, folders, other programs.

    Nothing is ever moved, and nothing overwritten unless you say so. Exported again to the same
    folder, a tree or an album loses what it no longer has; files that others put there stay.
    """
    given: dict[str, Any] = {
        "link": link,
        "beside": beside,
        "program": program,
        "nested": nested,
        "title": title,
        "overwrite": overwrite,
    }
    options = {name: value for name, value in given.items() if value}
    if without_names:
        options["file_names"] = False
    with explained_errors("Repeat the command to go on."):
        from nouncut.exports.registry import export_run
        from nouncut.runs.run import open_run

        groups = None if group is None else [parse_group(one) for one in group]
        result = export_run(open_run(run), to, output, groups=groups, preview=dry_run, **options)
    _show_result(result)


def _show_result(result: ExportResult) -> None:
    for problem in result.problems[:_SHOWN_PROBLEMS]:
        notes().print(f"Note: {problem}")
    if len(result.problems) > _SHOWN_PROBLEMS:
        notes().print(f"... and {len(result.problems) - _SHOWN_PROBLEMS:,} more")
    if result.is_preview:
        _show_preview(result)
        return
    kept = f", {result.n_kept:,} were there already" if result.n_kept else ""
    removed = f", {result.n_removed:,} old files removed" if result.n_removed else ""
    results().print(f"{result.n_written:,} written{kept}{removed}: {printable_path(result.path)}")
    if result.hint:
        results().print(result.hint)


def _show_preview(result: ExportResult) -> None:
    console = results()
    for file in result.files[:_SHOWN_FILES]:
        console.print(printable_path(file))
    if result.n_files > _SHOWN_FILES:
        console.print(f"... and {result.n_files - _SHOWN_FILES:,} more")
    kept = f", {result.n_kept:,} images are there already" if result.n_kept else ""
    removed = f", {result.n_removed:,} old files would be removed" if result.n_removed else ""
    console.print(
        f"{result.n_files:,} file{'s' * (result.n_files != 1)} would be written{kept}{removed}: "
        f"{printable_path(result.path)}. "
        "Nothing was done."
    )
