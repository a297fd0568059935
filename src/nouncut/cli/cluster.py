"""``nouncut cluster``: a folder into named groups."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from nouncut.cli.console import StageBars
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import (
    AsJson,
    Count,
    Input,
    Model,
    Output,
    Quiet,
    parse_lexicons,
    parse_tau,
    parse_templates,
    parse_whole,
)
from nouncut.cli.summary import show_estimate, show_run


def cluster(
    path: Input,
    clusters: Count = "auto",
    model: Model = "auto",
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            help="A file of your own words, one per line (or CSV): images are grouped along what "
            "they tell apart.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    lexicon: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="WordNet's files to take nouns from, such as animal,food; all for every one. "
            "Default: things that can be seen.",
            show_default=False,
        ),
    ] = None,
    prompts: Annotated[
        str, typer.Option(metavar="N,...|all", help="Which of the seven built-in prompts to use.")
    ] = "all",
    templates: Annotated[
        Path | None,
        typer.Option(
            help="A file of your own prompts, each with one {}.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    output: Output = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a run of other settings in --output.")
    ] = False,
    tau: Annotated[
        str | None,
        typer.Option(
            metavar="X|auto",
            help="Temperature of the softmax over nouns. Default: 0.04 for CLIP, else auto.",
            show_default=False,
        ),
    ] = None,
    neighbors: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Neighbours that every image keeps. Default: twice the root of the number of "
            "images per cluster, at most 30.",
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    solver: Annotated[
        Literal["auto", "exact", "spectral"], typer.Option(help="How prompts are ensembled.")
    ] = "auto",
    noun_filter: Annotated[
        Literal["tac", "gradnorm", "none"] | None,
        typer.Option(
            help="Which nouns are used. Default: tac, and all of your own.", show_default=False
        ),
    ] = None,
    compare: Annotated[
        Literal["looks", "words"] | None,
        typer.Option(
            help="Whether images are close that look alike, or that the words say the same of. "
            "Default: looks; words with --vocabulary.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Sort images into meaningful, named groups.

    Writes a run directory with tables and report.html, and prints the clusters. Features are kept:
    a second run encodes only what is new, and an interrupted one goes on when the command is
    repeated.

    Examples: nouncut cluster photos; nouncut cluster photos -k 12; nouncut cluster photos
    --vocabulary moods.txt
    """
    again = f"What has been encoded is kept; go on with: {shlex.join(['nouncut', *sys.argv[1:]])}"
    with explained_errors(again), StageBars(quiet) as bars:
        from nouncut.runs.cluster import cluster_images

        run = cluster_images(
            path,
            parse_whole(clusters, "-k"),
            model=model,
            vocabulary=vocabulary,
            lexicons=parse_lexicons(lexicon, vocabulary),
            templates=parse_templates(prompts, templates),
            tau=parse_tau(tau),
            n_neighbors=parse_whole(neighbors, "--neighbors"),
            seed=seed,
            solver=solver,
            noun_filter=noun_filter,
            compare=compare,
            output=output,
            replace=replace,
            on_estimate=None if quiet else show_estimate,
            progress=bars,
        )
    show_run(run, quiet=quiet, as_json=as_json)
