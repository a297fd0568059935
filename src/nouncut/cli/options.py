"""Options that several commands share, and what their values mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Input = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Folders, images, patterns or list files (.txt); or one file of ready-made features "
        "(.npy, .npz, .parquet, .safetensors).",
        show_default=False,
    ),
]
Count = Annotated[
    str,
    typer.Option(
        "-k",
        "--clusters",
        metavar="N|auto",
        help="Number of clusters; auto finds it from the images.",
    ),
]
Model = Annotated[
    str,
    typer.Option(
        help="auto, mini, ViT-B/32, a hub id or a folder: see nouncut models. auto takes CLIP "
        "where its weights are on this machine or can be fetched (this uses the network), else "
        "mini."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="The run directory. Default: nouncut-runs/NAME here.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
RunDirectory = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run directory that nouncut cluster wrote.")
]


def parse_whole(text: str, option: str) -> int | Literal["auto"]:
    """Return a whole number of at least 1, or "auto"."""
    if text == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        message = f"{text!r} is neither a whole number above 0 nor auto."
        raise typer.BadParameter(message, param_hint=option)
    return int(text)


def parse_tau(tau: str | None) -> float | Literal["auto"] | None:
    """Return the temperature that was asked for."""
    if tau is None or tau == "auto":
        return "auto" if tau else None
    try:
        return float(tau)
    except ValueError:
        message = f"{tau!r} is neither a number nor auto."
        raise typer.BadParameter(message, param_hint="--tau") from None


def parse_lexicons(names: str | None, vocabulary: Path | None) -> list[str] | None:
    """Return the files of WordNet that were asked for."""
    from nouncut.runs.settings import VISIBLE_LEXICONS

    if names is None:
        return list(VISIBLE_LEXICONS)
    if vocabulary is not None:
        raise typer.BadParameter("--lexicon and --vocabulary exclude each other.")
    return None if names == "all" else [name.strip() for name in names.split(",")]


def parse_templates(prompts: str, file: Path | None) -> list[str]:
    """Return the prompts that were asked for."""
    from nouncut.words.prompts import PROMPTS, read_templates

    if file is not None:
        if prompts != "all":
            raise typer.BadParameter("--prompts and --templates exclude each other.")
        return read_templates(file)
    if prompts == "all":
        return list(PROMPTS)
    numbers = [number.strip() for number in prompts.split(",")]
    permitted = [str(i + 1) for i in range(len(PROMPTS))]
    if any(number not in permitted for number in numbers):
        message = f"{prompts!r}: choose from 1 to {len(PROMPTS)}, such as 1,3; or all."
        raise typer.BadParameter(message, param_hint="--prompts")
    return [PROMPTS[int(number) - 1] for number in dict.fromkeys(numbers)]
