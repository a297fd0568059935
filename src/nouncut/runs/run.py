"""A finished run, read from its directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.compute.rows import principal_plane
from nouncut.errors import InputError, printable_path
from nouncut.runs.directory import MANIFEST, REPORT, array_path, damaged
from nouncut.runs.edit_log import LoggedEdit, read_log
from nouncut.runs.edit_verbs import EditVerbs
from nouncut.runs.manifest import read_manifest
from nouncut.runs.notebook import run_html
from nouncut.runs.questions import Questions
from nouncut.runs.remote import is_url, local_copy
from nouncut.runs.run_files import RunFiles
from nouncut.runs.table_parts import TableParts
from nouncut.runs.tables import real_paths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nouncut.runs.edited_tables import GroupFacts

Read = TypeVar("Read")


@dataclass(frozen=True, eq=False, repr=False)
class Run(EditVerbs, Questions, TableParts):
    """A finished run; `open_run` opens one.

    Tables are read on first use, arrays are mapped into memory. The groups are those that were
    computed, with all edits of the run applied. Edits change this object and the run directory;
    other objects of the same run see them when they are opened again or make an edit.

    Parameters
    ----------
    directory : Path
        The run directory.
    manifest : dict
        What was done and with which settings.
    edits : tuple of LoggedEdit, optional
        The edits in the run directory, which `open_run` reads.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from nouncut.runs.writer import RunContents, RunWriter
    >>> from nouncut.runs.tables import images_table
    >>> from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA
    >>> row = {"path": "/pets/rex.jpg", "cluster": 0, "name": "dog", "outlier": False}
    >>> dog = {"cluster": 0, "name": "dog", "size": 1, "exemplars": [0], "borderline": []}
    >>> contents = RunContents(
    ...     manifest={"source_kind": "images"},
    ...     assignments=pa.Table.from_pylist([row], schema=ASSIGNMENTS_SCHEMA),
    ...     clusters=pa.Table.from_pylist([dog], schema=CLUSTERS_SCHEMA),
    ...     images=images_table(["/pets/rex.jpg"]),
    ...     arrays={"features": np.ones((1, 4), dtype=np.float32)},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder, RunWriter(folder) as writer:
    ...     run = writer.finish(contents)
    ...     print(repr(run).removeprefix(f"Run('{folder}': "))
    ...     run.names, run.labels.tolist(), [path.name for path in run.paths()]
    ...     run.array("features").shape, run.has_array("semantic"), run.skipped
    1 images in 1 clusters)
    (['dog'], [0], ['rex.jpg'])
    ((1, 4), False, [])
    """

    directory: Path
    manifest: dict[str, Any]
    edits: tuple[LoggedEdit, ...] = ()

    @cached_property
    def assignments(self) -> pa.Table:
        """One row per clustered image: cluster, second choice, and how certain both are.

        Images that are set aside have no cluster.
        """
        if not self.edits:
            return self._table("assignments")
        from nouncut.runs.edited_tables import edited_assignments

        return edited_assignments(self.computed.assignments, self.groups)

    @cached_property
    def clusters(self) -> pa.Table:
        """One row per cluster, the largest first: its number, name, size and typical images."""
        if not self.edits:
            return _largest_first(self.all_clusters)
        if self.sample is not None:
            from nouncut.runs.sample import whole_clusters

            return whole_clusters(self)
        from nouncut.runs.edited_tables import edited_clusters

        return edited_clusters(self)

    @cached_property
    def group_facts(self) -> GroupFacts:
        """Describes edited groups; only that of the run without edits is used."""
        from nouncut.runs.edited_tables import GroupFacts

        graph = self.graph() if self.has_array("graph_data") else None
        hashes = self.images["hash"].slice(0, len(self.assignments)).combine_chunks()
        return GroupFacts(graph, hashes)

    @cached_property
    def all_clusters(self) -> pa.Table:
        """The computed clusters by number, also those whose images are all gone."""
        return self._table("clusters")

    @cached_property
    def images(self) -> pa.Table:
        """One row per file: the clustered ones in the order of `assignments`, then the skipped."""
        return self._table("images")

    @property
    def labels(self) -> NDArray[np.intp]:
        """The cluster of every image; -1 for images that are set aside."""
        return self.groups.labels.copy() if self.edits else self._computed_labels.copy()

    @property
    def names(self) -> list[str]:
        """The name of every cluster, in the order of `clusters`."""
        names: list[str] = self.clusters["name"].to_pylist()
        return names

    @property
    def names_by_cluster(self) -> dict[int, str]:
        """The names by the numbers of the clusters, of which edits may have left some out."""
        return dict(zip(self.clusters["cluster"].to_pylist(), self.names, strict=True))

    @property
    def has_images(self) -> bool:
        """Whether the run was made from image files rather than a file of features."""
        return self.manifest.get("source_kind") != "features"

    @property
    def report(self) -> Path:
        """Path of the report."""
        return self.directory / REPORT

    def paths(self) -> list[Path]:
        """Return the paths of the clustered images.

        Returns
        -------
        list of Path
            In the order of the arrays' rows. Unlike those in the tables, these paths also work if
            a name is not valid text.
        """
        return [path for part in self.image_parts() for path in real_paths(part)]

    @property
    def array_names(self) -> list[str]:
        """The names of all arrays."""
        return list(self._files.array_names)

    def has_array(self, name: str) -> bool:
        """Return whether the run has an array.

        Parameters
        ----------
        name : str
            Such as "features", "semantic" or "embedding".

        Returns
        -------
        bool
            True if `array` would return it.
        """
        array_path(self.directory, name)  # raises if no array can have the name
        return name in self._files.array_names

    def array(self, name: str) -> NDArray[Any]:
        """Return an array, mapped into memory and read-only.

        Parameters
        ----------
        name : str
            Such as "features", "semantic" or "embedding".

        Returns
        -------
        ndarray
            The array; its rows are those of `assignments` where it has a row per image.

        Raises
        ------
        InputError
            If the run has no such array, or if it is damaged.
        """
        if not self.has_array(name):
            raise InputError(
                f"The run in {printable_path(self.directory)} has no array {name!r}. It has: "
                f"{', '.join(self._files.array_names) or 'none'}."
            )
        return self._unchanged(lambda: self._files.array(name))

    def map(self) -> NDArray[Any] | None:
        """Return where the images lie on the map.

        Returns
        -------
        ndarray of shape (n_images, 2) or None
            The map, else the principal plane of the embedding or of the features; None without
            any of them.
        """
        for name in ("layout", "embedding", "features"):
            if self.has_array(name):
                array = self.array(name)
                if len(array) == len(self.assignments) and array.ndim == 2 and array.size:
                    return array if array.shape[1] == 2 else principal_plane(array)
        return None

    def common_folder(self) -> Path | None:
        """Return the deepest folder that holds all clustered images.

        Returns
        -------
        Path or None
            None where there is none, such as for images on several drives.
        """
        import pyarrow.compute as pc

        # The first and the last path in order share what all paths share.
        parts = (pc.min_max(part["path"]).as_py() for part in self.image_parts())
        ends = {end or "" for part in parts for end in part.values()}
        try:
            folder = os.path.commonpath([os.path.dirname(end) for end in (min(ends), max(ends))])
        except ValueError:
            return None
        return Path(folder) if folder else None

    def graph(self) -> csr_array:
        """Return the graph that was cut.

        Returns
        -------
        csr_array of shape (n_images, n_images)
            Symmetric, normalised.

        Raises
        ------
        InputError
            If the run has no graph, or if it is damaged.
        """
        from scipy.sparse import csr_array

        return csr_array(self.computed._graph)  # another object with the same arrays

    @cached_property
    def _graph(self) -> csr_array:
        from scipy.sparse import csr_array

        parts = tuple(self.array(f"graph_{part}") for part in ("data", "indices", "indptr"))
        n_images = len(self.assignments)
        try:
            graph = csr_array(parts, shape=(n_images, n_images))
            graph.check_format(full_check=True)
        except ValueError as error:
            raise damaged(array_path(self.directory, "graph_indices"), str(error)) from error
        return graph

    def __repr__(self) -> str:
        n_images = self.manifest["n_images"]
        n_clusters = len(self.clusters)
        place = printable_path(self.directory)
        return f"Run({place!r}: {n_images} images in {n_clusters} clusters)"

    def _repr_html_(self) -> str:
        shown = self.sample or self
        return run_html(self.manifest, shown.clusters, shown.images)

    @cached_property
    def _files(self) -> RunFiles:
        return RunFiles(self.directory, self.manifest)

    def _table(self, name: str) -> pa.Table:
        return self._unchanged(lambda: self._files.table(name))

    def _unchanged(self, read: Callable[[], Read]) -> Read:
        """Read something, unless another run has taken the place of this one in the meantime."""
        try:
            found = read()
        finally:
            # Writers change the manifest before they touch anything else.
            if _identity(read_manifest(self.directory)) != _identity(self.manifest):
                raise InputError(
                    f"The run in {printable_path(self.directory)} was written anew since it was "
                    "opened. Open it again."
                )
        return found


def open_run(directory: AnyPath) -> Run:
    """Open a finished run.

    Parameters
    ----------
    directory : path
        The run directory, or its ``manifest.json`` or ``report.html``; a URL that fsspec opens
        is copied to the user's cache first.

    Returns
    -------
    Run
        The run.

    Raises
    ------
    InputError
        If there is no run, if it is unfinished or damaged, or if a newer nouncut wrote it.

    Examples
    --------
    >>> import tempfile
    >>> from nouncut.errors import InputError
    >>> from nouncut.runs.run import open_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         open_run(folder)
    ...     except InputError as error:
    ...         print(str(error).removeprefix(folder))
     is not a run: it has no manifest.json. Pass the directory that a run wrote.
    """
    place = run_directory(directory)
    manifest = read_finished(place)
    run = Run(place, manifest, read_log(place, manifest).edits)
    run._unchanged(run._files.check)
    return run


def run_identities(run: Run) -> list[str]:
    """Return what identifies the images of a run: hashes of their contents, else their paths."""
    images = run.images.slice(0, len(run.assignments))
    column = images["path"] if images["hash"].null_count else images["hash"]
    ids: list[str] = column.to_pylist()
    return ids


def run_directory(path: AnyPath) -> Path:
    """Return the run directory that a path names, itself or by its manifest or report.

    A run at a URL is copied here.
    """
    if is_url(path):
        return local_copy(os.fspath(path))
    place = Path(path)
    is_file = place.name in (MANIFEST, REPORT) and not place.is_dir()
    return place.parent if is_file else place


def read_finished(directory: Path) -> dict[str, Any]:
    """Read the manifest of a finished run."""
    manifest = read_manifest(directory)
    if manifest["status"] != "complete":
        raise InputError(
            f"The run in {printable_path(directory)} is unfinished. If it is not being written at "
            "the moment, run the command again: it goes on where it stopped."
        )
    for count in ("n_images", "n_clusters", "n_skipped"):
        if type(manifest.get(count)) is not int:
            raise damaged(directory / MANIFEST, f"it has no number {count!r}")
    if manifest["n_clusters"] > manifest["n_images"]:
        raise damaged(directory / MANIFEST, "it has more clusters than images")
    return manifest


def _largest_first(clusters: pa.Table) -> pa.Table:
    """Return the clusters that have images, the largest first."""
    sizes = clusters["size"].to_numpy()
    order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    in_order = np.array_equal(order, np.arange(len(sizes)))
    return clusters if in_order else clusters.take(order)


def _identity(manifest: dict[str, Any]) -> tuple[Any, Any]:
    return manifest.get("id"), manifest["status"]
