"""``nouncut models``: which models there are."""

from __future__ import annotations

from rich.table import Table

from nouncut.cli.console import print_json, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import AsJson


def models(as_json: AsJson = False) -> None:
    """List the models that --model takes, and what their first use downloads. Uses no network."""
    with explained_errors():
        from nouncut.models.choose import list_models

        found = list_models()
    if as_json:
        print_json([model._asdict() for model in found])
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "ready", "runs in", "download", "about"):
        table.add_column(heading, overflow="fold")
    for model in found:
        ready = "yes" if model.ready else "no"
        table.add_row(model.name, ready, model.runtime, model.download or "-", model.about)
    console = results()
    console.print(table, soft_wrap=False)
    console.print()
    console.print(
        "Any other CLIP, OpenCLIP, SigLIP or SigLIP 2 model: its id on the hub, or the folder it "
        "was saved to. An ONNX export (float32 or float16) runs in ONNX Runtime; any other "
        'checkpoint needs torch: pip install "nouncut[torch]". A model that is not ready is '
        "downloaded when it is first used."
    )
