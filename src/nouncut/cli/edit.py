"""``nouncut edit``: merge, split, rename and undo groups, move images."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from nouncut.cli.console import notes, print_json, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson, RunDirectory, is_number, parse_group
from nouncut.errors import ParameterError, printable_path

if TYPE_CHECKING:
    from nouncut.runs.editing import Plan
    from nouncut.runs.run import Run

edit = typer.Typer(
    help="Mend the groups of a run: merge, split and rename groups, move images, undo. Groups are "
    "given by number or name. Nothing but the list of edits in the run directory changes.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Group = Annotated[str, typer.Argument(metavar="GROUP", help="Number or name of a group.")]
Images = Annotated[
    list[str],
    typer.Argument(
        metavar="IMAGE...",
        help="Images of the run: paths, ends of paths, or row numbers.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would change, and stop.")]


@edit.callback()
def _options(context: typer.Context, run: RunDirectory) -> None:
    context.obj = run


@edit.command()
def merge(
    context: typer.Context,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Numbers or names.")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Merge groups into the first of them."""
    with explained_errors():
        from nouncut.runs.editing import plan_merge

        _edit(context, plan_merge([parse_group(group) for group in groups]), yes, dry_run)


@edit.command()
def split(
    context: typer.Context,
    group: Group,
    parts: Annotated[str, typer.Option(metavar="N", help="Number of parts.")] = "auto",
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Split a group; the largest part keeps number and name."""
    with explained_errors():
        from nouncut.runs.editing import plan_split

        if parts != "auto" and not is_number(parts):
            raise ParameterError('`parts` must be a number or "auto".')
        plan = plan_split(parse_group(group), "auto" if parts == "auto" else int(parts))
        _edit(context, plan, yes, dry_run)


@edit.command()
def move(
    context: typer.Context,
    images: Images,
    to: Annotated[
        str, typer.Option(metavar="GROUP", help="Number or name; a new name makes a new group.")
    ],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Move images to a group."""
    with explained_errors():
        from nouncut.runs.editing import plan_move

        _edit(context, plan_move(images, parse_group(to)), yes, dry_run)


@edit.command()
def rename(
    context: typer.Context,
    group: Group,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Give a group another name."""
    with explained_errors():
        from nouncut.runs.editing import plan_rename

        _edit(context, plan_rename({parse_group(group): name}), yes, dry_run)


@edit.command("set-aside")
def set_aside(
    context: typer.Context, images: Images, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Take images out of all groups; move puts them back."""
    with explained_errors():
        from nouncut.runs.editing import plan_set_aside

        _edit(context, plan_set_aside(images), yes, dry_run)


@edit.command()
def apart(
    context: typer.Context,
    first: Group,
    second: Group,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remember that two groups are not the same: suggest leaves them out."""
    with explained_errors():
        from nouncut.runs.editing import plan_apart

        _edit(context, plan_apart([parse_group(first), parse_group(second)]), yes, dry_run)


@edit.command()
def undo(context: typer.Context, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Undo the last edit; again for the one before it."""
    with explained_errors():
        from nouncut.runs.editing import plan_undo

        _edit(context, plan_undo, yes, dry_run)


@edit.command()
def redo(context: typer.Context, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Do again what was undone last."""
    with explained_errors():
        from nouncut.runs.editing import plan_redo

        _edit(context, plan_redo, yes, dry_run)


@edit.command()
def suggest(
    context: typer.Context,
    n: Annotated[int, typer.Option("-n", "--number", help="How many pairs to show.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show pairs of groups that may be one: merge them, or say apart."""
    with explained_errors():
        found = _open(context).suggestions(n)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    if not found:
        results().print("No two groups are close enough to be one.")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("score", "numbers", "groups", "why"):
        table.add_column(heading, overflow="fold")
    for one in found:
        names = " and ".join(f'"{printable_path(name)}"' for name in one.names)
        numbers = " ".join(map(str, one.clusters))
        table.add_row(f"{one.score:.2f}", numbers, names, printable_path(one.reason))
    results().print(table, soft_wrap=False)
    first, second = found[0].clusters
    notes().print(f"The same? {_command('edit', context.obj)} merge {first} {second}")
    notes().print(f"Not the same? {_command('edit', context.obj)} apart {first} {second}")


@edit.command()
def history(context: typer.Context, as_json: AsJson = False) -> None:
    """Show all edits, the oldest first."""
    with explained_errors():
        past = _open(context).history
    if as_json:
        fields = ("time", "text", "n_images", "is_undone")
        print_json([{name: getattr(one, name) for name in fields} for one in past])
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("when (UTC)", "images", "edit", ""):
        table.add_column(
            heading, overflow="fold", justify="right" if heading == "images" else "left"
        )
    for one in past:
        when = printable_path(one.time[:16].replace("T", " "))
        undone = "undone" if one.is_undone else ""
        table.add_row(when, f"{one.n_images:,}", printable_path(one.text), undone)
    results().print(table, soft_wrap=False)


def _open(context: typer.Context) -> Run:
    from nouncut.runs.run import open_run

    return open_run(context.obj)


def _edit(context: typer.Context, plan: Plan, yes: bool, dry_run: bool) -> None:
    """Say what an edit does and how many images it touches, ask if there is somebody, and do it."""
    from nouncut.runs.editing import edit_run

    run = _open(context)
    expected = plan(run)
    console = results()
    console.print(_sentence(expected.text, expected.n_images))
    if dry_run:
        console.print("Nothing was changed.")
        return
    if not yes and sys.stdin.isatty() and not typer.confirm("Go on?", default=True):
        console.print("Nothing was changed.")
        return
    done = edit_run(run, plan)[-1]
    if done.text != expected.text:
        console.print(_sentence(done.text, done.n_images))
    console.print("Done.")
    if run.report.exists():
        notes().print(f"The report does not show it yet: {_command('report', context.obj)}")


def _sentence(text: str, n_images: int) -> str:
    shown = printable_path(text)
    touched = f"{n_images:,} image{'s' * (n_images != 1)}"
    return f"{shown[0].upper()}{shown[1:]}. Touches {touched}."


def _command(verb: str, run: Path) -> str:
    return f"nouncut {verb} {shlex.quote(printable_path(run))}"
