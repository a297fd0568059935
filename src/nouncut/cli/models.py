"""``nouncut models``: which models there are."""

from __future__ import annotations

from rich.table import Table

from nouncut.cli.console import print_json, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson


def models(as_json: AsJson = False) -> None:
    """List the models that --model takes, and whether they are on this machine. Uses no network."""
    with explained_errors():
        from nouncut.models.choose import list_models

        found = list_models()
    if as_json:
        print_json([{"name": m.name, "ready": m.ready, "about": m.about} for m in found])
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "on this machine", "about"):
        table.add_column(heading, overflow="fold")
    for model in found:
        table.add_row(model.name, "yes" if model.ready else "no", model.about)
    console = results()
    console.print(table, soft_wrap=False)
    console.print()
    console.print(
        "Any other CLIP, OpenCLIP, SigLIP or SigLIP 2 model: its id on the hub, or the folder it "
        "was saved to. A model that is not on this machine is fetched when it is first used."
    )
