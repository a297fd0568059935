"""The groups of a run after edits, and the methods that edit them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from nouncut.compute.files import AnyPath
from nouncut.errors import InputError
from nouncut.runs.directory import damaged
from nouncut.runs.edit_log import EDITS, LogFile, LoggedEdit
from nouncut.runs.edits import EditedGroups, Replay

if TYPE_CHECKING:
    from nouncut.runs.editing import PastEdit, Plan
    from nouncut.runs.run import Run

_OF_ALL_EDITS = ("images", "all_clusters", "_files", "_computed_labels")
_OF_THESE_EDITS = ("assignments", "clusters", "groups", "tree", "searcher", "sample")


class EditVerbs:
    """Edits the groups of a run; part of `Run`."""

    directory: Path
    manifest: dict[str, Any]
    edits: tuple[LoggedEdit, ...]

    @cached_property
    def groups(self) -> EditedGroups:
        """The labels and names with all edits applied."""
        try:
            return self.computed._replay(self.edits)
        except InputError as error:
            raise damaged(self.directory / EDITS, str(error)) from error

    @property
    def log(self) -> LogFile:
        """The edit log in the run directory."""
        return self.computed._log

    @cached_property
    def _log(self) -> LogFile:
        return LogFile(self.directory, self.manifest)

    @cached_property
    def _replay(self) -> Replay:
        run = cast("Run", self)
        names = run.all_clusters["name"].to_pylist()
        return Replay(EditedGroups.computed(run.labels, names))

    @cached_property
    def computed(self) -> Run:
        """The run without edits; it keeps what no edit changes."""
        other = self._with(())
        vars(other)["computed"] = other
        return other

    @property
    def history(self) -> list[PastEdit]:
        """All edits, the oldest first, and whether they are undone."""
        from nouncut.runs.editing import past_edits

        return past_edits(self.edits)

    def with_edits(self, edits: tuple[LoggedEdit, ...]) -> Run:
        """Return the run with other edits, without writing them.

        Parameters
        ----------
        edits : tuple of LoggedEdit
            The edits.

        Returns
        -------
        Run
            Another object for the same run directory.
        """
        other = self._with(edits)
        vars(other)["computed"] = self.computed
        return other

    def _with(self, edits: tuple[LoggedEdit, ...]) -> Run:
        run = cast("Run", self)
        other = replace(run, edits=edits)
        for name in _OF_ALL_EDITS:
            if name in vars(run):
                vars(other)[name] = vars(run)[name]
        return other

    def merge(self, clusters: Sequence[int | str], *, preview: bool = False) -> PastEdit:
        """Merge clusters into one, which keeps the number and the name of the first.

        Parameters
        ----------
        clusters : sequence of int or str
            Numbers or names of at least two clusters.
        preview : bool, default=False
            Only say what would be done, and how many images it would touch.

        Returns
        -------
        PastEdit
            What was done, and how many images it touched.

        Raises
        ------
        InputError
            If there is no such cluster.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from nouncut import cluster_images, open_run
        >>> from nouncut.paper.synthetic import make_clip_like
        >>> data = make_clip_like(n_images=60, n_clusters=3, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "clip.npy"), data.features)
        ...     run = cluster_images(Path(folder, "clip.npy"), 3, output=Path(folder, "run"))
        ...     run.merge([0, 2], preview=True).n_images, run.merge([0, 2]).text
        ...     named = run.rename(0, "both")
        ...     open_run(run.directory).names
        ...     undone = run.undo()
        ...     run.names, [edit.is_undone for edit in run.history]
        (20, 'merge "group 2" (2; 20 images) into "group 0" (0; 20 images)')
        ['both', 'group 1']
        (['group 0', 'group 1'], [False, True])
        """
        from nouncut.runs.editing import plan_merge

        return self._edit(plan_merge(clusters), preview)

    def split(
        self, cluster: int | str, parts: int | Literal["auto"] = "auto", *, preview: bool = False
    ) -> PastEdit:
        """Split a cluster by cutting its part of the graph again.

        Parameters
        ----------
        cluster : int or str
            Its number or name. The largest part keeps both.
        parts : int or "auto", default="auto"
            Number of parts; "auto" finds one.
        preview : bool, default=False
            Only say what would be done, and how many images it would touch.

        Returns
        -------
        PastEdit
            What was done, and how many images it touched.

        Raises
        ------
        InputError
            If there is no such cluster, if it does not fall into parts, or if the run has no graph.
        """
        from nouncut.runs.editing import plan_split

        return self._edit(plan_split(cluster, parts), preview)

    def move(
        self,
        images: AnyPath | int | Iterable[AnyPath | int],
        to: int | str,
        *,
        preview: bool = False,
    ) -> PastEdit:
        """Move images to a cluster.

        Parameters
        ----------
        images : path or int, or iterable of them
            Paths or row numbers, as `explain` takes them.
        to : int or str
            Number or name of the cluster. A name that no cluster has makes a new cluster.
        preview : bool, default=False
            Only say what would be done, and how many images it would touch.

        Returns
        -------
        PastEdit
            What was done, and how many images it touched.

        Raises
        ------
        InputError
            If there is no such image or cluster, or if all images are there already.
        """
        from nouncut.runs.editing import plan_move

        return self._edit(plan_move(images, to), preview)

    def rename(self, cluster: int | str, name: str, *, preview: bool = False) -> PastEdit:
        """Give a cluster another name.

        Parameters
        ----------
        cluster : int or str
            Its number or name.
        name : str
            The new name.
        preview : bool, default=False
            Only say what would be done, and how many images it would touch.

        Returns
        -------
        PastEdit
            What was done, and how many images it touched.

        Raises
        ------
        InputError
            If there is no such cluster, or if another cluster has the name: merge them instead.
        """
        from nouncut.runs.editing import plan_rename

        return self._edit(plan_rename({cluster: name}), preview)

    def set_aside(
        self, images: AnyPath | int | Iterable[AnyPath | int], *, preview: bool = False
    ) -> PastEdit:
        """Take images out of all clusters; `move` puts them back.

        Parameters
        ----------
        images : path or int, or iterable of them
            Paths or row numbers, as `explain` takes them.
        preview : bool, default=False
            Only say what would be done, and how many images it would touch.

        Returns
        -------
        PastEdit
            What was done, and how many images it touched.

        Raises
        ------
        InputError
            If there is no such image, or if all are set aside already.
        """
        from nouncut.runs.editing import plan_set_aside

        return self._edit(plan_set_aside(images), preview)

    def keep_apart(self, clusters: Sequence[int | str]) -> PastEdit:
        """Remember that two clusters are not the same, so that `suggestions` leaves them out.

        Parameters
        ----------
        clusters : sequence of int or str
            Numbers or names of two clusters.

        Returns
        -------
        PastEdit
            What was done; it touches no image.

        Raises
        ------
        InputError
            If there is no such cluster, or if the two are kept apart already.
        """
        from nouncut.runs.editing import plan_apart

        return self._edit(plan_apart(clusters))

    def undo(self, *, preview: bool = False) -> PastEdit:
        """Undo the last edit that is not undone yet.

        Parameters
        ----------
        preview : bool, default=False
            Only say what would be done, and how many images it would touch.

        Returns
        -------
        PastEdit
            What was undone.

        Raises
        ------
        InputError
            If there is nothing to undo.
        """
        from nouncut.runs.editing import plan_undo

        return self._edit(plan_undo, preview)

    def redo(self, *, preview: bool = False) -> PastEdit:
        """Do again what was undone last, unless another edit followed.

        Parameters
        ----------
        preview : bool, default=False
            Only say what would be done, and how many images it would touch.

        Returns
        -------
        PastEdit
            What was done again.

        Raises
        ------
        InputError
            If there is nothing to redo.
        """
        from nouncut.runs.editing import plan_redo

        return self._edit(plan_redo, preview)

    def _edit(self, plan: Plan, preview: bool = False) -> PastEdit:
        from nouncut.runs.editing import PastEdit, edit_run

        run = cast("Run", self)
        if preview:
            planned = plan(run.with_edits(run.log.read().edits))
            return PastEdit(planned.text, planned.n_images, planned.time, is_undone=False)
        *_, done = edits = edit_run(run, plan)
        # The fields of a run are frozen, so that nothing else changes them.
        vars(self)["edits"] = edits
        for name in _OF_THESE_EDITS:
            vars(self).pop(name, None)
        return PastEdit(done.text, done.n_images, done.time, is_undone=False)
