"""What people ask of a run: why an image is where it is, groups of groups, search, duplicates."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from nouncut.compute.files import AnyPath
from nouncut.errors import ParameterError

if TYPE_CHECKING:
    from nouncut.runs.explain import Explanation
    from nouncut.runs.run import Run
    from nouncut.runs.search import SearchArrays, Searcher
    from nouncut.runs.suggestions import Suggestion
    from nouncut.runs.tree import TreeNode


class Questions:
    """Answers questions about a run without changing it; part of `Run`."""

    def explain(self, image: AnyPath | int) -> Explanation:
        """Explain why an image is in its cluster.

        Parameters
        ----------
        image : path or int
            Path of an image as in `assignments`, the end of it if no other path ends alike, or
            a row number.

        Returns
        -------
        Explanation
            The most similar images, the words that speak for the cluster, and the same for the
            second choice. No model is loaded.

        Raises
        ------
        InputError
            If the run has no such image; the message names similar ones.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from nouncut import cluster_images
        >>> from nouncut.paper.synthetic import make_clip_like
        >>> data = make_clip_like(n_images=300, n_clusters=3, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "clip.npy"), data.features)
        ...     run = cluster_images(Path(folder, "clip.npy"), 3, output=Path(folder, "run"))
        ...     found = run.explain(7)
        >>> found.row, len(found.chosen.nearest), found.is_outlier
        (7, 4, False)
        """
        from nouncut.runs.explain import explain_image
        from nouncut.runs.sample import explain_sampled

        run = cast("Run", self)
        return explain_sampled(run, image) if run.sample else explain_image(run, image)

    @cached_property
    def tree(self) -> TreeNode:
        """Groups of groups: the clusters as a tree, with names for all groups.

        Its levels are those that were asked for, or the few that persist, if any. Clusters are
        joined by their links in the graph and by what they mean. Edits do not move groups in the
        tree: a new one lies where most of its images were. No model is loaded.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from nouncut import cluster_images
        >>> from nouncut.paper.synthetic import make_clip_like
        >>> data = make_clip_like(n_images=300, n_clusters=4, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "clip.npy"), data.features)
        ...     run = cluster_images(Path(folder, "clip.npy"), [2, 4], output=Path(folder, "run"))
        ...     tree = run.tree
        >>> len(tree.children), sorted(tree.clusters)
        (2, [0, 1, 2, 3])
        """
        from nouncut.runs.tree import run_tree

        return run_tree(cast("Run", self))

    @cached_property
    def levels(self) -> list[list[int]]:
        """The group of every computed cluster on every level of the tree, the coarsest first."""
        from nouncut.runs.tree import computed_levels

        return computed_levels(cast("Run", self).computed)

    def search(
        self, text: str | None = None, *, like: AnyPath | int | None = None, n: int | None = 20
    ) -> pa.Table:
        """Find images by a text or by an example.

        Parameters
        ----------
        text : str, optional
            What to search for, such as "dogs on grass". Images of groups whose name is at or below
            what the text is about ("dog") come first, then those that the model finds closest.
        like : path or int, optional
            An image of the run, as for `explain`, or another image file. Pass this or `text`.
        n : int or None, default=20
            How many images to return at most; None for all.

        Returns
        -------
        pyarrow.Table
            Path, cluster, name, score (a cosine), whether the group's name matches, and the row in
            `assignments`; the best images first.

        Raises
        ------
        InputError
            If the run was made without a model that reads texts, or if the file is no image.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from nouncut import cluster_images
        >>> from nouncut.paper.synthetic import make_clip_like
        >>> data = make_clip_like(n_images=300, n_clusters=3, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "clip.npy"), data.features)
        ...     run = cluster_images(Path(folder, "clip.npy"), 3, output=Path(folder, "run"))
        ...     found = run.search(like=7, n=5)
        >>> set(run.labels[found["row"]]) == {run.labels[7]}
        True
        """
        from nouncut.runs.search import check_count

        check_count(n)
        if (text is None) == (like is None):
            raise ParameterError("Pass either `text` or `like`.")
        run = cast("Run", self)
        if run.searches_sample:
            from nouncut.runs.sample import search_sample

            return search_sample(run, text, like, n)
        if text is not None:
            return self.searcher.by_text(text, n)
        return self.searcher.like(like, n)  # type: ignore[arg-type]

    def duplicates(self, threshold: float = 0.95) -> pa.Table:
        """Find images that are the same, or nearly so.

        Parameters
        ----------
        threshold : float, default=0.95
            The least cosine of the visual features of two images that are nearly the same. Files
            with the same content always are.

        Returns
        -------
        pyarrow.Table
            One row per image that has duplicates: the number of its group of duplicates, path,
            cluster, name, its largest cosine within the group, and whether another file has the
            same content. Large groups come first.

        Raises
        ------
        InputError
            If the run compares images by words.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from nouncut import cluster_images
        >>> from nouncut.paper.synthetic import make_clip_like
        >>> features = make_clip_like(n_images=300, n_clusters=3, random_state=0).features
        >>> features[7] = features[5] + 1e-3 * features[6]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "clip.npy"), features)
        ...     run = cluster_images(Path(folder, "clip.npy"), 3, output=Path(folder, "run"))
        ...     run.duplicates(0.99).select(["group", "row"]).to_pylist()
        [{'group': 0, 'row': 5}, {'group': 0, 'row': 7}]
        """
        from nouncut.runs.search import find_duplicates

        return find_duplicates(cast("Run", self), threshold)

    def suggestions(self, n: int | None = 20) -> list[Suggestion]:
        """Find pairs of groups that may be one.

        Two groups are close if the graph links them, and if their images look alike, both relative
        to the links and the likeness within them. They are suggested if they are at least half as
        close as the halves of a usual cluster of the run. Groups that `keep_apart` named are left
        out.

        Parameters
        ----------
        n : int or None, default=20
            How many pairs to return at most; None for all.

        Returns
        -------
        list of Suggestion
            The closest pair first: numbers, names, a score, a reason in words, and the closest
            images. Empty without a graph.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from nouncut import cluster_images
        >>> from nouncut.paper.synthetic import make_clip_like
        >>> data = make_clip_like(n_images=300, n_clusters=3, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "clip.npy"), data.features)
        ...     run = cluster_images(Path(folder, "clip.npy"), 4, output=Path(folder, "run"))
        ...     best = run.suggestions()[0]
        ...     halves = np.isin(run.labels, best.clusters)
        >>> len(set(data.labels[halves]))
        1
        """
        from nouncut.runs.search import check_count
        from nouncut.runs.suggestions import suggest_merges

        check_count(n)
        run = cast("Run", self)
        if run.sample is not None:
            from nouncut.runs.sample import suggest_in_sample

            return suggest_in_sample(run.sample, n)
        return suggest_merges(run, n)

    @property
    def searches_sample(self) -> bool:
        """Whether searches find images of the `sample` alone: not all have their features kept."""
        run = cast("Run", self)
        return run.is_large and not run._files.has_features("looks")

    @cached_property
    def searcher(self) -> Searcher:
        """What searches the images."""
        from nouncut.runs.search import Searcher

        return Searcher(cast("Run", self))

    @property
    def search_arrays(self) -> SearchArrays:
        """What all searches need; it is loaded on first use, and edits do not change it."""
        return cast("Run", self).computed._search_arrays

    @property
    def usual_link(self) -> float | None:
        """How strongly computed clusters are linked with their nearest cluster."""
        return cast("Run", self).computed._usual_link

    @property
    def half_closeness(self) -> float:
        """How close the halves of a computed cluster are."""
        return cast("Run", self).computed._half_closeness

    @cached_property
    def _half_closeness(self) -> float:
        from nouncut.runs.suggestions import half_closeness

        return half_closeness(cast("Run", self))

    @cached_property
    def _search_arrays(self) -> SearchArrays:
        from nouncut.runs.search import PartedSearchArrays, SearchArrays

        run = cast("Run", self)
        return PartedSearchArrays(run) if run.is_large else SearchArrays(run)

    @cached_property
    def _usual_link(self) -> float | None:
        from nouncut.method.division import usual_link
        from nouncut.method.merge import cluster_edges

        run = cast("Run", self)
        return usual_link(cluster_edges(run.graph(), run.labels))
