"""``nouncut bench``: the paper's tables, measured and published side by side."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nouncut.cli.console import StageBars, notes
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import Quiet

if TYPE_CHECKING:
    from nouncut.paper.tables.layouts import Layout

Table = Literal[
    "classic",
    "challenging",
    "kernels",
    "rad",
    "prompts",
    "encoders",
    "openclip",
    "fine",
    "shift",
    "leak",
    "time",
]
DataRoot = Annotated[
    Path | None,
    typer.Option(help="The folder that holds the data sets' folders.", show_default=False),
]
OwnNouns = Annotated[
    Path | None,
    typer.Option(help="A file of nouns to choose from, instead of WordNet's.", show_default=False),
]
QuickNouns = Annotated[
    bool,
    typer.Option(
        "--quick-nouns",
        help="Choose nouns without prompts around them, which encodes a seventh of the texts. The "
        "paper chooses with all seven; mini does without in any case.",
    ),
]


def bench(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA...",
            help="Data sets of the paper (cifar-10, imagenet-c/fog/3, ...), which need "
            "--data-root, or folders with a folder per class. Default: the table's own.",
            show_default=False,
        ),
    ] = None,
    data_root: DataRoot = None,
    table: Annotated[
        Table | None,
        typer.Option(help="The paper's table to fill. Default: all methods.", show_default=False),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="The methods to run, such as ours,tac-kmeans. Default: all of the table.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="auto, mini, ViT-B/32, a hub id or a folder: see nouncut models. Default: the "
            "table's own; auto without a table.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per method.")] = 5,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where results and tables are kept.")
    ] = Path("nouncut-bench"),
    vocabulary: OwnNouns = None,
    quick_nouns: QuickNouns = False,
    again: Annotated[
        bool, typer.Option("--again", help="Compute what has been computed before again.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods on labelled images, with the paper's values beside.

    Prints Markdown and writes it, LaTeX, CSV and JSON to --output. Everything that has been
    computed is kept there: repeat the command to go on.

    Examples: nouncut bench photos --model mini; nouncut bench cifar-10 --data-root data --table
    classic
    """
    command = shlex.join(["nouncut", *sys.argv[1:]])
    with explained_errors(f"What has been computed is kept; go on with: {command}"):
        from nouncut.paper.bench.run import Plan, run_benchmark
        from nouncut.paper.bench.writing import benchmark_markdown, setting, write_benchmark

        layout = _layout(table, methods)
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
        if not plan.data:
            raise typer.BadParameter("Name a data set or a folder.", param_hint="DATA")
        with StageBars(quiet) as bars:
            found = run_benchmark(plan, bars)
        about = setting(command)
        written = write_benchmark(found, about, output)
    # Not through rich, which would fold long rows.
    typer.echo(benchmark_markdown(found, about), nl=False)
    if not quiet:
        notes().print(f"{found.n_computed} results computed, {found.n_kept} were there already.")
        notes().print(f"Written: {', '.join(str(path) for path in written)}")


def _layout(table: Table | None, methods: str | None) -> Layout:
    from nouncut.paper.baselines.methods import METHODS
    from nouncut.paper.tables.layouts import keep_methods, method_layout, table_layout

    names = [name.strip() for name in methods.split(",")] if methods else []
    if names == ["all"]:
        names = list(METHODS)
    if table is None:
        return method_layout(names)
    return keep_methods(table_layout(table), names) if names else table_layout(table)
