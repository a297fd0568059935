"""``nouncut ablate``: the effect of the method's parameters, as figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nouncut.cli.bench import (
    BenchFolder,
    DataRoot,
    QuickNouns,
    Seeds,
    Vocabulary,
    WhoseNouns,
    this_command,
)
from nouncut.cli.console import StageBars, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import Model, Quiet
from nouncut.paper.published import ParameterName

_Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A data set of the paper (cifar-10, dtd, ...), which needs --data-root, or a folder "
        "with a folder per class.",
    ),
]
_Vary = Annotated[
    ParameterName | None,
    typer.Option(
        help="The parameter to vary. Default: all four, then the iterations of the diffusion and "
        "the affinity matrices.",
        show_default=False,
    ),
]


def ablate(
    data: _Data,
    data_root: DataRoot = None,
    vary: _Vary = None,
    model: Model = "auto",
    seeds: Seeds = 5,
    output: BenchFolder = Path("nouncut-bench"),
    vocabulary: Vocabulary = "wordnet",
    quick_nouns: QuickNouns = False,
    shift_nouns: WhoseNouns = "train",
    quiet: Quiet = False,
) -> None:
    """Draw how the scores on labelled images change with tau, q, mu and lambda.

    Writes PNG, SVG and CSV. Every result is kept: repeat the command to continue.

    Examples: nouncut ablate photos --vary tau; nouncut ablate cifar-10 --data-root data
    """
    with (
        explained_errors(f"Results are kept; continue with: {this_command()}"),
        StageBars(quiet) as bars,
    ):
        from nouncut.paper.bench.ablation import PARAMETERS
        from nouncut.paper.bench.columns import load_single
        from nouncut.paper.bench.encoded_dataset import EncodedDataset
        from nouncut.paper.bench.plots import (
            check_matplotlib,
            save_affinities,
            save_convergence,
            save_curve,
        )
        from nouncut.paper.bench.setup import load_setup, load_words

        check_matplotlib()
        words = load_words(vocabulary)
        dataset = load_single(data, data_root, shift_nouns)
        setup = load_setup(model, output, words, quick_nouns=quick_nouns, progress=bars)
        encoded = EncodedDataset(dataset, setup)
        written = []
        for parameter in [vary] if vary else PARAMETERS:
            written += save_curve(encoded, parameter, seeds)
        if not vary:
            written += save_convergence(encoded)
            written += save_affinities(encoded)
    for path in written:
        results().print(str(path))
