"""``nouncut search``: images of a run by text, by example, and duplicates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from nouncut.cli.console import notes, print_json, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson, OverwriteTable, Quiet, RunDirectory, TableFile

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 50


def search(
    run: RunDirectory,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help='What to search for, such as "dogs on grass".'),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="IMAGE",
            help="Find images like this one: a file, or an image of the run by its path, the end "
            "of its path, or its row number.",
            show_default=False,
        ),
    ] = None,
    duplicates: Annotated[
        bool,
        typer.Option("--duplicates", help="Find images that are the same, or nearly so."),
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(help="Least cosine of near duplicates. Default: 0.95.", show_default=False),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--number", help="How many images to find.")] = 20,
    output: TableFile = None,
    overwrite: OverwriteTable = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find images of a run by a text, by an example image, or all duplicates.

    A text finds images of groups whose name it covers (dog finds spaniels), then those that the
    model finds closest to it.

    Examples: nouncut search RUN "dogs on grass"; nouncut search RUN --like photo.jpg; nouncut
    search RUN --duplicates
    """
    with explained_errors():
        from nouncut.exports.tables import check_table_file, plain_rows, write_table_file

        _check_one_way(text, like, duplicates, threshold)
        if output is not None:
            check_table_file(output, overwrite=overwrite)
        found = _find(run, text, like, threshold, n, duplicates)
        if output is not None:
            write_table_file(found, output, overwrite=overwrite)
    if as_json:
        print_json(list(plain_rows(found)))
    elif not quiet:
        _show(found, output, duplicates)


def _check_one_way(
    text: str | None, like: str | None, duplicates: bool, threshold: float | None
) -> None:
    from nouncut.errors import ParameterError

    if (text is not None) + (like is not None) + duplicates != 1:
        raise ParameterError('Pass one of: a text such as "dogs on grass", --like or --duplicates.')
    if threshold is not None and not duplicates:
        raise ParameterError("--threshold is for --duplicates.")


def _find(
    directory: Path,
    text: str | None,
    like: str | None,
    threshold: float | None,
    n: int,
    duplicates: bool,
) -> pa.Table:
    from nouncut.runs.run import open_run
    from nouncut.runs.search import SAME

    run = open_run(directory)
    if run.searches_sample and run.sample is not None:
        n_searched, n_all = run.sample.n_images, run.n_images
        notes().print(
            f"Searching a sample of {n_searched:,} of {n_all:,} images: a run of this size does "
            "not keep the features of all."
        )
    if duplicates:
        return run.duplicates(SAME if threshold is None else threshold)
    return run.search(text, like=like, n=n)


def _show(found: pa.Table, output: Path | None, duplicates: bool) -> None:
    from nouncut.errors import printable_path

    console = results()
    table = Table(box=None, pad_edge=False)
    first, last = ("", "similarity") if duplicates else ("score", "")
    for heading in (first, "image", "group", last):
        table.add_column(heading, overflow="fold")
    shown = found.slice(0, _SHOWN).to_pylist()
    folder = _common_folder([row["path"] for row in shown])
    for row in shown:
        image = printable_path(row["path"].removeprefix(folder))
        group = printable_path(row["name"] or "")
        if duplicates:
            same = "same file" if row["copy"] else f"{row['similarity']:.2f}"
            table.add_row(str(row["group"] + 1), image, group, same)
        else:
            by_name = "by the name" if row["by_name"] else ""
            table.add_row(f"{row['score']:.2f}", image, group, by_name)
    if folder:
        console.print(f"In {printable_path(folder)}:")
    if shown:
        console.print(table, soft_wrap=False)
    if len(found) > _SHOWN:
        n_more = len(found) - _SHOWN
        console.print(f"... and {n_more:,} more: see them all with --output or --json")
    if duplicates:
        n_groups = len(set(found["group"].to_pylist()))
        groups = "1 group" if n_groups == 1 else f"{n_groups:,} groups"
        found_any = f"{len(found):,} images in {groups} of duplicates."
        console.print(found_any if n_groups else "There are no duplicates.")
    if output is not None:
        console.print(f"Table: {printable_path(output)}")


def _common_folder(paths: list[str]) -> str:
    """Return the folder that all paths are in, with the separator; nothing if there is none."""
    try:
        folder = os.path.join(os.path.commonpath([os.path.dirname(path) for path in paths]), "")
    except ValueError:  # there are no paths, or some are relative
        return ""
    # Of URLs, one of two slashes is lost.
    return folder if len(folder) > 1 and all(path.startswith(folder) for path in paths) else ""
