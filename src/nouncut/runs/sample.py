"""The sample of a large run: some of its images with all arrays, as an ordinary run has them.

The large run has the labels of all images, and its edits. The sample has the features, the graph
and the map that reports, predictions and explanations need.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.errors import InputError, printable_path
from nouncut.images.find import SkippedFile
from nouncut.runs.directory import SAMPLE, damaged
from nouncut.runs.edit_log import LogFile, LoggedEdit
from nouncut.runs.edited_tables import described_clusters
from nouncut.runs.edits import EditedGroups
from nouncut.runs.explain import Explanation, Reasons, explain_image, find_row
from nouncut.runs.run import Run, read_finished
from nouncut.runs.run_files import RunFiles
from nouncut.runs.suggestions import Suggestion, suggest_merges
from nouncut.runs.tables import CLUSTERS_SCHEMA
from nouncut.runs.tree import TreeNode

ROWS = "sample_rows"
# What the manifest of a large run says about all images, and that of its sample about its own.
_OWN_FIELDS = ("n_images", "n_skipped", "arrays", "files", "least_familiarity")
_NO_IMAGES: dict[str, Any] = {"cohesion": None, "exemplars": [], "borderline": []}


@dataclass(frozen=True, eq=False, repr=False)
class SampledRun(Run):
    """Some images of a large run; groups, names and sizes are those of all images."""

    large: Run = field(kw_only=True)

    @property
    def whole(self) -> Run:
        """The large run."""
        return self.large

    @property
    def sample(self) -> None:
        """A sample has no sample."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows of the images in the large run, in ascending order."""
        return np.asarray(self.array(ROWS), np.intp)

    @cached_property
    def groups(self) -> EditedGroups:
        """The groups of the large run; some may have no image here."""
        return self.large.groups.take(self.rows)

    @cached_property
    def computed(self) -> Run:
        """The sample of the run without edits."""
        found = self.large.computed.sample
        assert found is not None
        return found

    @property
    def log(self) -> LogFile:
        """The edit log of the large run."""
        return self.large.log

    @property
    def skipped(self) -> list[SkippedFile]:
        """Files that were not clustered, and why."""
        return self.large.skipped

    @cached_property
    def clusters(self) -> pa.Table:
        """One row per cluster, with the number of all its images."""
        facts = {}
        if not np.array_equal(self.groups.labels, self.computed.labels):
            facts = self.computed.group_facts.describe(self.groups.labels, self.assignments)
        sizes = group_sizes(self.large)
        rows = [
            _NO_IMAGES | row | {"size": int(sizes[row["cluster"]])}
            for row in described_clusters(self.all_clusters, self.groups, facts)
        ]
        rows.sort(key=lambda row: (-row["size"], row["cluster"]))
        return pa.Table.from_pylist(rows, schema=CLUSTERS_SCHEMA)

    @property
    def tree(self) -> TreeNode:
        """The groups of groups of the large run."""
        return self.large.tree

    def with_edits(self, edits: tuple[LoggedEdit, ...]) -> Run:
        """Return the sample of the large run with other edits."""
        found = self.large.with_edits(edits).sample
        assert found is not None
        return found

    def row_of(self, row: int) -> int:
        """Return the row of an image of the large run; raise an `InputError` if it is not here."""
        at = int(np.searchsorted(self.rows, row))
        if at == len(self.rows) or self.rows[at] != row:
            raise InputError(
                f"Image {row:,} is not among the {len(self.rows):,} of {self.large.n_images:,} "
                "images whose features and neighbours this run keeps. Choose another one, or "
                "search for images like it."
            )
        return at

    @cached_property
    def _files(self) -> RunFiles:
        return RunFiles(self.directory / SAMPLE, self.manifest)


def open_sample(run: Run) -> SampledRun | None:
    """Return the sample of a large run; None if it has none."""
    expected = run.manifest.get("sample")
    if not expected:
        return None
    if run.edits:
        known = run.computed.sample
        assert known is not None
        found = SampledRun(run.directory, known.manifest, run.edits, large=run)
        shared = ("images", "all_clusters", "_files")
        vars(found).update({name: vars(known)[name] for name in shared if name in vars(known)})
        return found
    place = run.directory / SAMPLE
    manifest = read_finished(place)
    if manifest.get("id") != expected["id"] or manifest["n_images"] != expected["n_images"]:
        raise damaged(place, "it belongs to another run")
    own: dict[str, Any] = {name: manifest.get(name) for name in _OWN_FIELDS}
    rest = {name: value for name, value in run.manifest.items() if name not in ("parts", "sample")}
    found = SampledRun(run.directory, rest | own, (), large=run)
    found._unchanged(found._files.check)
    rows = found.rows
    if np.any(np.diff(rows) <= 0) or (len(rows) and rows[-1] >= run.n_images):
        raise damaged(place, "its rows are not in order")
    return found


def group_sizes(run: Run) -> NDArray[np.intp]:
    """Return the number of images of every group, by number."""
    if not run.edits:
        return np.asarray(run.all_clusters["size"].to_numpy(), np.intp)
    labels = run.groups.labels
    return np.bincount(labels[labels >= 0], minlength=run.groups.next_number)


def whole_clusters(run: Run) -> pa.Table:
    """Return the clusters of a large run after edits; their typical images are of the sample."""
    sample = run.sample
    assert sample is not None
    table = sample.clusters
    for name in ("exemplars", "borderline"):
        lists = [sample.rows[rows].tolist() for rows in table[name].to_pylist()]
        place = table.schema.get_field_index(name)
        field_type = table.schema.field(place)
        table = table.set_column(place, field_type, pa.array(lists, field_type.type))
    return table


def whole_rows(run: Run, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows of images in the run of all images."""
    return run.rows[rows] if isinstance(run, SampledRun) else rows


def explain_sampled(run: Run, image: AnyPath | int) -> Explanation:
    """Explain why an image of the sample is in its cluster; rows are those of the large run."""
    sample = run.sample
    assert sample is not None
    found = explain_image(sample, sample.row_of(find_row(run, image)))

    def in_whole(reasons: Reasons | None) -> Reasons | None:
        if reasons is None:
            return None
        near = (replace(one, row=int(sample.rows[one.row])) for one in reasons.nearest)
        return replace(reasons, nearest=tuple(near))

    return replace(
        found,
        row=int(sample.rows[found.row]),
        chosen=in_whole(found.chosen),
        runner_up=in_whole(found.runner_up),
    )


def suggest_in_sample(sample: SampledRun, n: int | None) -> list[Suggestion]:
    """Return pairs of groups that may be one; rows are those of the large run."""
    rows = sample.rows
    return [
        replace(one, pairs=tuple((int(rows[a]), int(rows[b])) for a, b in one.pairs))
        for one in suggest_merges(sample, n)
    ]


def search_sample(
    run: Run, text: str | None, like: AnyPath | int | None, n: int | None
) -> pa.Table:
    """Search the images of the sample; rows are those of the large run."""
    sample = run.sample
    if sample is None:
        raise InputError(
            f"The run in {printable_path(run.directory)} has no features of its images, so it "
            "cannot be searched. Cluster the images again."
        )
    if like is not None:
        with suppress(InputError):
            like = sample.row_of(find_row(run, like))
    table = sample.search(text, like=like, n=n)
    rows = pa.array(sample.rows[table["row"].to_numpy()], pa.int32())
    return table.set_column(table.schema.get_field_index("row"), "row", rows)


def need_all_images(run: Run, what: str) -> None:
    """Raise an `InputError` if a large run lacks what a question or an edit needs."""
    if run.is_large:
        raise InputError(
            f"{what} needs the neighbours of all images, and the run in "
            f"{printable_path(run.directory)} is too large to keep them: it has those of a sample "
            f"of its {run.n_images:,} images."
        )
