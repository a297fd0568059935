"""``nouncut bench``: the paper's tables, measured and published side by side."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nouncut.cli.console import StageBars, notes
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import Quiet
from nouncut.paper.published import TableName

if TYPE_CHECKING:
    from nouncut.paper.tables.paper_tables import Layout

# Options that nouncut ablate has as well.
DataRoot = Annotated[
    Path | None,
    typer.Option(help="The folder that holds the folders of the data sets.", show_default=False),
]
BenchFolder = Annotated[
    Path, typer.Option("-o", "--output", help="The folder for results, tables and figures.")
]
Vocabulary = Annotated[
    Path | None,
    typer.Option(help="A file of nouns to choose from, instead of WordNet's.", show_default=False),
]
QuickNouns = Annotated[
    bool,
    typer.Option(
        "--quick-nouns",
        help="Choose nouns without prompts, which encodes a seventh of the texts. The paper "
        "chooses with all seven prompts; mini always chooses without.",
    ),
]
Seeds = Annotated[int, typer.Option(min=1, help="Runs per method or value.")]

_Data = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA...",
        help="Data sets of the paper (cifar-10, imagenet-c/fog/3, ...), which need --data-root, or "
        "folders with a folder per class. Default: the table's own.",
        show_default=False,
    ),
]
_Table = Annotated[
    TableName | None,
    typer.Option(help="The paper's table to fill. Default: all methods.", show_default=False),
]
_Methods = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="The methods to run, such as ours,tac-kmeans. Default: all of the table.",
        show_default=False,
    ),
]
_Model = Annotated[
    str | None,
    typer.Option(
        help="auto, mini, ViT-B/32, a hub id or a folder: see nouncut models. Default: the "
        "table's own; auto without a table.",
        show_default=False,
    ),
]
_Again = Annotated[bool, typer.Option("--again", help="Compute kept results again.")]


def bench(
    data: _Data = None,
    data_root: DataRoot = None,
    table: _Table = None,
    methods: _Methods = None,
    model: _Model = None,
    seeds: Seeds = 5,
    output: BenchFolder = Path("nouncut-bench"),
    vocabulary: Vocabulary = None,
    quick_nouns: QuickNouns = False,
    again: _Again = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods on labelled images, beside the paper's values.

    Prints Markdown, and writes it with LaTeX, CSV and JSON to --output. Every result is kept
    there: repeat the command to continue.

    Examples: nouncut bench photos --model mini; nouncut bench cifar-10 --data-root data --table
    classic
    """
    command = this_command()
    with explained_errors(f"Results are kept; continue with: {command}"):
        from nouncut.paper.bench import write_tables
        from nouncut.paper.bench.benchmark import Plan, run_benchmark

        layout = _layout(table, methods)
        if not (data or layout.datasets):
            raise typer.BadParameter("Name a data set or a folder.", param_hint="DATA")
        plan = Plan(
            layout,
            data=tuple(data or layout.datasets),
            models=(model,) if model else layout.models if table else ("auto",),
            output=output,
            data_root=data_root,
            seeds=seeds,
            vocabulary=vocabulary,
            quick_nouns=quick_nouns,
            again=again,
        )
        with StageBars(quiet) as bars:
            found = run_benchmark(plan, bars)
        about = write_tables.describe_run(command)
        written = write_tables.write_benchmark(found, about, output)
    # Not through rich, which would wrap long rows.
    typer.echo(write_tables.benchmark_markdown(found, about), nl=False)
    if not quiet:
        notes().print(f"{found.n_computed} results computed, {found.n_kept} were there already.")
        notes().print(f"Written: {', '.join(str(path) for path in written)}")


def this_command() -> str:
    """Return the command that is running, ready to be pasted into a shell."""
    return shlex.join(["nouncut", *sys.argv[1:]])


def _layout(table: TableName | None, methods: str | None) -> Layout:
    from nouncut.paper.baselines.methods import METHODS
    from nouncut.paper.tables.paper_tables import keep_methods, method_layout, table_layout

    names = [name.strip() for name in methods.split(",")] if methods else []
    if names == ["all"]:
        names = list(METHODS)
    if table is None:
        return method_layout(names)
    return keep_methods(table_layout(table), names) if names else table_layout(table)
