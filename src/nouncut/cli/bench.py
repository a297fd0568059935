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
from nouncut.method.choices import Symmetry
from nouncut.paper.published import PromptNouns, ShiftNouns, TableName

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
    str,
    typer.Option(
        help="The nouns to choose from: wordnet (all 119,034, as in the paper), visible (those of "
        "nouncut cluster), or a .txt or .csv file of nouns."
    ),
]
WhoseNouns = Annotated[
    ShiftNouns,
    typer.Option(
        help="Whose images choose the nouns of ImageNet-C, -V2 and -S: ImageNet's training images, "
        "as the paper's authors do, or their own."
    ),
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
        "folders with a folder per class. imagenet-c is gaussian_noise/1, imagenet-c/all the mean "
        "over all corruptions. Default: the table's own.",
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
_WhichPrompts = Annotated[
    PromptNouns,
    typer.Option(
        help="The prompts that choose the nouns of a row with a single prompt: its own, or all."
    ),
]
_LeakWords = Annotated[
    Literal["exact", "related"],
    typer.Option(
        help="What the table leak removes: the names of the classes, or also their plurals and "
        "synonyms."
    ),
]
_Neighbors = Annotated[
    Symmetry,
    typer.Option(help="The edges of our graphs: chosen by either image, or by both (Eq. 8)."),
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
    vocabulary: Vocabulary = "wordnet",
    quick_nouns: QuickNouns = False,
    shift_nouns: WhoseNouns = "train",
    prompt_nouns: _WhichPrompts = "own",
    leak_words: _LeakWords = "exact",
    neighbors: _Neighbors = "union",
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

        layout = _layout(table, methods, leak_words)
        # The tests of the paper's own values need no data.
        no_data = table == "wilcoxon" and data_root is None
        named = tuple(data or (() if no_data else layout.datasets))
        if not (named or no_data):
            raise typer.BadParameter("Name a data set or a folder.", param_hint="DATA")
        plan = Plan(
            layout,
            data=named,
            models=(model,) if model else layout.models if table else ("auto",),
            output=output,
            data_root=data_root,
            seeds=seeds,
            vocabulary=vocabulary,
            quick_nouns=quick_nouns,
            shift_nouns=shift_nouns,
            prompt_nouns=prompt_nouns,
            neighbors=neighbors,
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


def _layout(table: TableName | None, methods: str | None, leak_words: str) -> Layout:
    from nouncut.paper.baselines.methods import METHODS
    from nouncut.paper.tables.paper_tables import (
        keep_methods,
        method_layout,
        table_layout,
        without_related_words,
    )

    names = [name.strip() for name in methods.split(",")] if methods else []
    if names == ["all"]:
        names = list(METHODS)
    if table is None:
        return method_layout(names)
    layout = table_layout(table)
    if leak_words == "related":
        layout = without_related_words(layout)
    return keep_methods(layout, names) if names else layout
