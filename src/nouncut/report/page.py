"""The contents of the page as plain data, before any HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from nouncut.errors import printable_path
from nouncut.report.facts import (
    CountFacts,
    ModelFacts,
    describe_count,
    describe_model,
    describe_settings,
    describe_times,
    shown_date,
)
from nouncut.report.figures import Figure, method_figures
from nouncut.report.next_steps import NextStep, names_command, next_steps
from nouncut.report.said import say
from nouncut.report.shown_images import (
    ShownImage,
    ThumbnailPlan,
    describe_images,
    distinct_images,
    plan_thumbnails,
)
from nouncut.runs.changes import describe_changes, read_changes
from nouncut.runs.run import Run
from nouncut.runs.search import family_words
from nouncut.runs.tree import TreeNode

_MAX_OUTLIERS = 48
_MAX_SKIPPED_PER_REASON = 200
_MAX_NOUNS = 400
# Second choices with less confidence are not shown.
_LEAST_SECOND_CHOICE = 0.01


@dataclass(frozen=True)
class ClusterSection:
    """A cluster on the page."""

    number: int
    name: str
    more_words: tuple[str, ...]
    # Words at or above the name in WordNet, for the search.
    family: tuple[str, ...]
    gloss: str
    name_confidence: float | None
    is_guess: bool
    size: int
    # Those on the map and in the gallery.
    n_mapped: int
    share: float
    cohesion: float | None
    exemplars: list[ShownImage]
    borderline: list[ShownImage]


@dataclass(frozen=True)
class SkippedGroup:
    """Files that were skipped for the same reason."""

    reason: str
    n_files: int
    shown_paths: list[str]


@dataclass(frozen=True)
class Page:
    """Everything that the templates show."""

    title: str
    sources: list[str]
    finished: str
    has_images: bool
    n_images: int
    # Images on the map and in the gallery; of a large run, a sample.
    n_mapped: int
    n_set_aside: int
    n_edits: int
    n_copies: int
    n_outliers: int
    n_skipped: int
    model: ModelFacts
    count: CountFacts
    clusters: list[ClusterSection]
    # None if no level above the clusters persists.
    tree: TreeNode | None
    outliers: list[ShownImage]
    skipped: list[SkippedGroup]
    warnings: list[str]
    # What changed since the run before; empty if there was none.
    changes: list[str]
    settings: list[tuple[str, str]]
    times: list[tuple[str, str, float]]
    prompts: list[tuple[str, float]]
    nouns: list[str]
    n_nouns: int
    steps: list[NextStep]
    names_command: str
    figures: list[Figure]
    plan: ThumbnailPlan

    def shown_images(self) -> dict[int, ShownImage]:
        """Return all images that are shown, by their rows."""
        grids = chain.from_iterable((c.exemplars, c.borderline) for c in self.clusters)
        return {image.row: image for grid in (*grids, self.outliers) for image in grid}


def describe_run(run: Run) -> Page:
    """Collect the contents of a run's page; of a large run, `run` is its sample."""
    manifest, n_images = run.manifest, run.whole.n_images
    nouns = (manifest.get("nouns") or {}).get("words") or []
    plan = plan_thumbnails(run.n_images, len(run.clusters))
    labels = run.labels
    numbers = 1 + max(run.names_by_cluster, default=-1)
    mapped = np.bincount(labels[labels >= 0], minlength=numbers)
    outlier_rows, n_outliers = _outlier_rows(run)
    clusters = run.clusters.to_pylist()
    listed = (row for one in clusters for row in (*one["exemplars"], *one["borderline"]))
    images, skipped = describe_images(run, chain(listed, outlier_rows)), _skipped(run)
    return Page(
        title=run_title(run),
        sources=[printable_path(source) for source in manifest.get("source") or []],
        finished=shown_date(manifest.get("finished")),
        has_images=run.has_images,
        n_images=n_images,
        n_mapped=run.n_images,
        n_set_aside=run.whole.n_set_aside,
        n_edits=sum(not edit.is_undone for edit in run.history),
        n_copies=int(manifest.get("n_copies") or 0),
        n_outliers=n_outliers,
        n_skipped=sum(group.n_files for group in skipped),
        model=describe_model(manifest),
        count=describe_count(manifest),
        clusters=[_section(one, images, plan, n_images, mapped) for one in clusters],
        tree=run.tree if run.tree.depth > 1 else None,
        outliers=distinct_images([images[row] for row in outlier_rows], _MAX_OUTLIERS),
        skipped=skipped,
        warnings=[str(warning) for warning in manifest.get("warnings") or []],
        changes=_changes(manifest),
        settings=describe_settings(manifest),
        times=describe_times(manifest),
        prompts=[(one["template"], one["weight"]) for one in manifest.get("prompts") or []],
        nouns=nouns[:_MAX_NOUNS],
        n_nouns=len(nouns),
        steps=next_steps(run),
        names_command=names_command(run),
        figures=method_figures(run),
        plan=plan,
    )


def _changes(manifest: dict[str, Any]) -> list[str]:
    changes = read_changes(manifest)
    return describe_changes(changes, advice=False) if changes else []


def run_title(run: Run) -> str:
    """Return the name of the folder that the images are from."""
    sources = [str(source) for source in run.manifest.get("source") or []]
    name = PurePath(sources[0]).name if sources else ""
    if name in ("", ".."):
        name = (run.common_folder() or PurePath()).name
    title = printable_path(name) if name else say("title.images")
    return say("title.more", name=title, n=len(sources) - 1) if len(sources) > 1 else title


def _section(
    cluster: dict[str, Any],
    images: dict[int, ShownImage],
    plan: ThumbnailPlan,
    n_images: int,
    mapped: NDArray[np.intp],
) -> ClusterSection:
    typical = [images[row] for row in cluster["exemplars"]]
    exemplars = distinct_images(typical, plan.n_exemplars)
    unsure = [images[row] for row in cluster["borderline"]]
    return ClusterSection(
        number=cluster["cluster"],
        name=cluster["name"] or "",
        more_words=tuple(cluster["more_words"] or ()),
        family=_family(cluster),
        gloss=cluster["gloss"] or "",
        # A group that is only numbered has no name to be sure of.
        name_confidence=cluster["name_confidence"] or None,
        is_guess=bool(cluster["guess"]),
        size=cluster["size"],
        n_mapped=int(mapped[cluster["cluster"]]),
        share=cluster["size"] / max(1, n_images),
        cohesion=cluster["cohesion"],
        exemplars=exemplars,
        borderline=distinct_images(_with_second_choice(unsure, exemplars), plan.n_borderline),
    )


def _family(cluster: dict[str, Any]) -> tuple[str, ...]:
    if cluster["guess"]:
        return ()
    return family_words(cluster["name"] or "", cluster["gloss"] or "")


def _with_second_choice(
    images: Sequence[ShownImage], exemplars: Sequence[ShownImage]
) -> list[ShownImage]:
    """Return the images that have a second choice and are not among the exemplars."""
    shown = {image.identity for image in exemplars}
    return [
        image
        for image in images
        if image.identity not in shown
        and image.second_cluster is not None
        and (image.second_confidence or 0) >= _LEAST_SECOND_CHOICE
    ]


def _outlier_rows(run: Run) -> tuple[list[int], int]:
    """Return the rows of the least sure outliers, and the number of all outliers."""
    rows = pc.indices_nonzero(run.assignments["outlier"].combine_chunks())
    order = pc.sort_indices(run.assignments["confidence"].take(rows))
    parts = [run.assignments] if run.whole is run else run.whole.assignment_parts()
    n_outliers = sum(int(pc.sum(part["outlier"]).as_py() or 0) for part in parts)
    # Copies are shown once, so take more than will be shown.
    return rows.take(order[: 4 * _MAX_OUTLIERS]).to_pylist(), n_outliers


def _skipped(run: Run) -> list[SkippedGroup]:
    """Group skipped files by reason, the most frequent reason first."""
    files = sorted(run.skipped, key=lambda file: file.reason or "")
    groups = [
        (reason, list(group)) for reason, group in groupby(files, lambda file: file.reason or "")
    ]
    groups.sort(key=lambda group: -len(group[1]))
    return [
        SkippedGroup(
            reason=reason or say("skipped.unknown"),
            n_files=len(group),
            shown_paths=[printable_path(file.path) for file in group[:_MAX_SKIPPED_PER_REASON]],
        )
        for reason, group in groups
    ]
