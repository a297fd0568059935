"""The printed summary of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rich.table import Table

from nouncut.cli.console import notes, print_json, results, shown_bytes
from nouncut.cli.exit_codes import for_command_line
from nouncut.compute.progress import shown_seconds

if TYPE_CHECKING:
    from nouncut.runs.estimate import Estimate
    from nouncut.runs.run import Run

_SHOWN_CLUSTERS = 40
_SHOWN_SKIPPED = 5
# Shorter estimates take longer to read than to wait for.
_WORTH_MENTIONING = 2.0


def show_run(run: Run, *, quiet: bool = False, as_json: bool = False) -> None:
    """Print the groups of a run."""
    if as_json:
        print_json(summary(run))
    elif not quiet:
        _show_notes(run)
        _show_table(run)


def summary(run: Run) -> dict[str, Any]:
    """Return the groups of a run for --json."""
    fields = (
        "n_images",
        "n_clusters",
        "n_copies",
        "n_outliers",
        "n_skipped",
        "n_encoded",
        "model",
        "tau",
        "cluster_count",
        "warnings",
        "seconds",
    )
    columns = ["cluster", "name", "more_words", "gloss", "size", "cohesion"]
    return {
        "directory": str(run.directory.absolute()),
        "report": str(run.report.absolute()),
        **{field: run.manifest.get(field) for field in fields},
        "clusters": run.clusters.select(columns).to_pylist(),
        "skipped": [{"path": str(file.path), "reason": file.reason} for file in run.skipped],
    }


def show_estimate(estimate: Estimate) -> None:
    """Print the estimated time and memory of a long run."""
    seconds = estimate.encoding_seconds + estimate.clustering_seconds
    if seconds < _WORTH_MENTIONING:
        return
    new = f"{estimate.images_to_encode:,} images and {estimate.texts_to_encode:,} words to encode"
    notes().print(
        f"{estimate.n_images:,} images; {new}. About {shown_seconds(seconds)} and "
        f"{shown_bytes(estimate.n_bytes)} of memory."
    )


def _show_notes(run: Run) -> None:
    from nouncut.errors import printable_path

    console = notes()
    if run.manifest["source_kind"] == "images" and not run.manifest["n_encoded"]:
        console.print("All images are known: nothing was encoded.")
    if run.manifest["model"]["name"] != run.manifest["settings"]["model"]:
        console.print(run.manifest["model"]["reason"])
    for warning in run.manifest["warnings"]:
        console.print(f"Note: {for_command_line(warning)}")
    for file in run.skipped[:_SHOWN_SKIPPED]:
        console.print(f"Skipped {printable_path(file.path)}: {file.reason}")
    if len(run.skipped) > _SHOWN_SKIPPED:
        console.print(f"... and {len(run.skipped) - _SHOWN_SKIPPED:,} more: see the report.")


def _show_table(run: Run) -> None:
    from nouncut.errors import printable_path

    console = results()
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "images", "cohesion", "also"):
        justify: Literal["left", "right"] = "left" if heading in ("name", "also") else "right"
        # On a narrow terminal, only the further words are folded.
        table.add_column(heading, justify=justify, no_wrap=heading != "also")
    for row in run.clusters.slice(0, _SHOWN_CLUSTERS).to_pylist():
        also = ", ".join(row["more_words"])
        cells = (row["name"], f"{row['size']:,}", f"{row['cohesion']:.2f}", also)
        table.add_row(*(printable_path(cell) for cell in cells))
    console.print(table, soft_wrap=False)
    if run.clusters.num_rows > _SHOWN_CLUSTERS:
        console.print(f"... and {run.clusters.num_rows - _SHOWN_CLUSTERS:,} more clusters")
    console.print()
    console.print(_count_sentence(run))
    console.print(f"Report: {printable_path(run.report)}")


def _count_sentence(run: Run) -> str:
    n_clusters = run.manifest["n_clusters"]
    about = f"{run.manifest['n_images']:,} images in {n_clusters:,} cluster{'s'[: n_clusters != 1]}"
    about += f", {run.manifest['n_outliers']:,} of them fit nowhere well."
    n_copies = run.manifest.get("n_copies", 0)
    if n_copies:
        about += (
            f" {n_copies:,} of them {'is a copy' if n_copies == 1 else 'are copies'} of others."
        )
    count = run.manifest["cluster_count"]
    if count and not count["confidence"]:
        about += " There are too few images to find a number of groups; choose one with -k."
    elif count:
        others = [str(number) for number, _ in count["candidates"][1:4]]
        sure = f"confidence {count['confidence']:.2f}"
        also = f"; next best: {', '.join(others)}" if others else ""
        about += f" The number was found ({sure}{also}); choose another with -k."
    return about
