"""``nouncut cache``: show, prune and check the stored features."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

import typer
from rich.table import Table

from nouncut.cli.console import print_json, results, shown_bytes
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson

cache = typer.Typer(
    help="Show the stored features, check them, or free their space.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)B?", re.IGNORECASE)
# The kind of features, and enough of the model's fingerprint to recognize it.
_SHOWN_NAME = 20
_FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@cache.command("show")
def show(as_json: AsJson = False) -> None:
    """Show where features are stored and how many. Set NOUNCUT_CACHE to use another folder."""
    with explained_errors():
        from nouncut.store.store import FeatureStore

        store = FeatureStore()
        spaces, size = store.spaces(), store.size()
    rows = [
        {
            "features": space.name,
            "rows": space.n_rows,
            "bytes": space.n_bytes,
            "last_used": space.last_used.isoformat(),
        }
        for space in spaces
    ]
    if as_json:
        print_json({"directory": str(store.root), "bytes": size, "spaces": rows})
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("features", "rows", "size", "last used"):
        table.add_column(heading, overflow="fold")
    for space in spaces:
        used = f"{space.last_used:%Y-%m-%d}"
        table.add_row(
            space.name[:_SHOWN_NAME], f"{space.n_rows:,}", shown_bytes(space.n_bytes), used
        )
    console = results()
    console.print(table, soft_wrap=False)
    console.print(f"{shown_bytes(size)} in {store.root}")


@cache.command("prune")
def prune(
    days: Annotated[
        int | None,
        typer.Option(min=0, help="Delete features unused for this many days.", show_default=False),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Delete the least recently used until the rest fits, such as 2GB.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Delete features to free space. They are encoded again when they are needed."""
    if days is None and max_size is None:
        raise typer.BadParameter("Say --days or --max-size.")
    with explained_errors():
        from nouncut.store.store import FeatureStore

        store = FeatureStore()
        freed = store.prune(
            unused_for=None if days is None else timedelta(days=days),
            max_bytes=None if max_size is None else _bytes(max_size),
        )
    results().print(f"{shown_bytes(freed)} freed in {store.root}")


@cache.command("check")
def check(
    repair: Annotated[bool, typer.Option("--repair", help="Delete damaged features.")] = False,
) -> None:
    """Find damaged features. Deleted ones are encoded again when they are needed."""
    with explained_errors():
        from nouncut.store.store import FeatureStore

        store = FeatureStore()
        problems = store.repair() if repair else store.check()
    for problem in problems:
        results().print(problem)
    if not problems:
        results().print(f"Nothing is damaged in {store.root}")
    elif not repair:
        results().print("Drop them with: nouncut cache check --repair")
        raise typer.Exit(1)


def _bytes(size: str) -> int:
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        message = f"{size!r} is not a size such as 500MB or 2GB."
        raise typer.BadParameter(message, param_hint="--max-size")
    return int(float(found[1]) * _FACTORS[found[2].lower()])
