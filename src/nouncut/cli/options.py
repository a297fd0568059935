"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from nouncut.cli.console import notes
from nouncut.cli.exit_codes import explained_errors
from nouncut.errors import printable_path
from nouncut.runs.settings import Declaration, declarations

Command = TypeVar("Command", bound=Callable[..., Any])

Input = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Folders, images, patterns or list files (.txt); or one file of ready-made features "
        "(.npy, .npz, .parquet, .safetensors).",
        show_default=False,
    ),
]
# As texts: a Path would spoil URLs.
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Folders, images, patterns or list files (.txt); or one file of ready-made features "
        "(.npy, .npz, .parquet, .safetensors). On a Dask cluster also tars and tables of images, "
        "folders of features, and URLs.",
        show_default=False,
    ),
]
SourcesOutput = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="PATH",
        help="The run directory; on a Dask cluster also a URL. Default: nouncut-runs/NAME here.",
        show_default=False,
    ),
]
Model = Annotated[str, typer.Option(help=declarations()["model"].help)]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="The run directory. Default: nouncut-runs/NAME here.",
        show_default=False,
    ),
]
TableFile = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="Write the table to this file: .csv, .jsonl or .parquet.",
        show_default=False,
    ),
]
OverwriteTable = Annotated[
    bool, typer.Option("--overwrite", help="Replace the file that --output names.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def _run_place(text: str) -> Path:
    """Return a run directory; a run at a URL is copied here first."""
    if "://" not in text:
        return Path(text)
    with explained_errors():
        from nouncut.runs.remote import local_copy

        place = local_copy(text)
    notes().print(f"{printable_path(text)} is copied to {printable_path(place)}; edits stay there.")
    return place


RunDirectory = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="A run directory that nouncut cluster wrote, or its URL.",
        parser=_run_place,
    ),
]


def takes_settings(*names: str, **defaults: Any) -> Callable[[Command], Command]:
    """Give a command an option for every declared setting; it gets them as the dict `settings`.

    Names limit the settings; `defaults` replace the default texts of single options.
    """

    def decorate(command: Command) -> Command:
        declared = {name: one for name, one in declarations().items() if name in names or not names}
        own = inspect.signature(command, eval_str=True).parameters.values()
        options = [_option(name, one, defaults) for name, one in declared.items()]
        parameters = [new for old in own for new in (options if old.name == "settings" else [old])]

        @functools.wraps(command)
        def run(**given: Any) -> Any:
            settings = {name: one.parse(given.pop(name)) for name, one in declared.items()}
            return command(settings=settings, **given)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run  # type: ignore[return-value]

    return decorate


def _option(name: str, declaration: Declaration, defaults: dict[str, Any]) -> inspect.Parameter:
    option = typer.Option(
        *declaration.flags,
        metavar=declaration.metavar,
        help=declaration.help,
        show_default=declaration.option_default is not None,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=defaults.get(name, declaration.option_default),
        annotation=Annotated[declaration.option_type, option],
    )


def parse_group(text: str) -> int | str:
    """Return the number of a group, or its name."""
    return int(text) if is_number(text) else text


def is_number(text: str) -> bool:
    """Return whether a text is a whole number of a reasonable size."""
    return text.isascii() and text.isdigit() and len(text) < 10
