"""``nouncut predict``: new images into the clusters of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from nouncut.cli.console import StageBars, notes, print_json, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson, Input, OverwriteTable, Quiet, RunDirectory, TableFile

if TYPE_CHECKING:
    from nouncut.runs.predict import Prediction

_SHOWN = 50


def predict(
    run: RunDirectory,
    path: Input,
    output: TableFile = None,
    overwrite: OverwriteTable = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Put new images into the groups of a run, without grouping again.

    Every image gets its group, how sure that is, and the second choice. Images of a kind that the
    run has not seen are marked.
    """
    with explained_errors("Repeat the command to continue."), StageBars(quiet) as bars:
        from nouncut.exports.tables import check_table_file, write_table_file
        from nouncut.runs.predict import predict_images
        from nouncut.runs.run import open_run

        if output is not None:
            check_table_file(output, overwrite=overwrite)
        found = predict_images(open_run(run), path, progress=bars)
        if output is not None:
            write_table_file(found.table, output, overwrite=overwrite)
    if as_json:
        print_json(_summary(found))
    elif not quiet:
        _show(found, output)


def _summary(found: Prediction) -> dict[str, Any]:
    return {
        "images": found.table.to_pylist(),
        "skipped": [{"path": str(file.path), "reason": file.reason} for file in found.skipped],
    }


def _show(found: Prediction, output: Path | None) -> None:
    from nouncut.errors import printable_path

    for file in found.skipped:
        notes().print(f"Skipped {printable_path(file.path)}: {file.reason}")
    console = results()
    table = Table(box=None, pad_edge=False)
    for heading in ("image", "group", "confidence", "second choice", ""):
        table.add_column(heading, overflow="fold")
    for row in found.table.slice(0, _SHOWN).to_pylist():
        second = row["second_name"]
        table.add_row(
            printable_path(Path(row["path"]).name),
            printable_path(row["name"] or "(set aside)"),
            f"{row['confidence']:.2f}",
            f"{printable_path(second)} {row['second_confidence']:.2f}" if second else "",
            "unseen kind" if row["unseen"] else "",
        )
    console.print(table, soft_wrap=False)
    n_images, n_unseen = found.table.num_rows, sum(found.table["unseen"].to_pylist())
    if n_images > _SHOWN:
        console.print(f"... and {n_images - _SHOWN:,} more: see them all with --output or --json")
    console.print()
    images = "1 image" if n_images == 1 else f"{n_images:,} images"
    console.print(f"{images}; {n_unseen:,} of a kind that the run has not seen.")
    if output is not None:
        console.print(f"Table: {printable_path(output)}")
