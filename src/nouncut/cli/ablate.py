"""``nouncut ablate``: what the method's parameters do, as figures."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from nouncut.cli.bench import DataRoot, OwnNouns, QuickNouns
from nouncut.cli.console import StageBars, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import Model, Quiet


def ablate(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A data set of the paper (cifar-10, dtd, ...), which needs --data-root, or a "
            "folder with a folder per class.",
        ),
    ],
    data_root: DataRoot = None,
    vary: Annotated[
        Literal["tau", "q", "mu", "lambda"] | None,
        typer.Option(
            help="The parameter to vary. Default: all four, and the course of the diffusion and "
            "the affinity matrices as well.",
            show_default=False,
        ),
    ] = None,
    model: Model = "auto",
    seeds: Annotated[int, typer.Option(min=1, help="Runs per value.")] = 5,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where results and figures are kept.")
    ] = Path("nouncut-bench"),
    vocabulary: OwnNouns = None,
    quick_nouns: QuickNouns = False,
    quiet: Quiet = False,
) -> None:
    """Draw how the scores on labelled images change with tau, q, mu and lambda.

    Writes PNG, SVG and CSV. Everything that has been computed is kept: repeat the command to go
    on.

    Examples: nouncut ablate photos --vary tau; nouncut ablate cifar-10 --data-root data
    """
    command = shlex.join(["nouncut", *sys.argv[1:]])
    with explained_errors(f"What has been computed is kept; go on with: {command}"):
        from nouncut.models.choose import load_encoder
        from nouncut.paper.bench.ablation import PARAMETERS
        from nouncut.paper.bench.figures import draw_ablation, draw_affinities, draw_convergence
        from nouncut.paper.bench.run import Plan, open_workshop
        from nouncut.paper.bench.subject import Subject
        from nouncut.paper.datasets.registry import load_dataset
        from nouncut.paper.tables.layouts import method_layout

        dataset = load_dataset(data, data_root)
        plan = Plan(
            method_layout(["ours"]),
            (data,),
            (model,),
            output,
            seeds=seeds,
            vocabulary=vocabulary,
            quick_nouns=quick_nouns,
        )
        with StageBars(quiet) as bars:
            workshop = open_workshop(plan, load_encoder(model).encoder, bars)
            subject = Subject(dataset, workshop)
            written = []
            for parameter in (vary,) if vary else PARAMETERS:
                written += draw_ablation(subject, workshop, parameter, seeds)
            if not vary:
                written += draw_convergence(subject, workshop)
                written += draw_affinities(subject, workshop)
    for path in written:
        results().print(str(path))
