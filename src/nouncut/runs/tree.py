"""Groups of groups: the clusters of a run as a tree with names for every level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nouncut.runs.run import Run

_ROOT = "all images"


@dataclass(frozen=True)
class TreeNode:
    """A group of a run, and the groups that it consists of; `print` shows the whole tree.

    Parameters
    ----------
    name : str
        A cluster's name, or a word that covers all groups below, or a list of their names.
    size : int
        Number of images.
    cluster : int or None
        Number of the cluster; None for a group of clusters.
    synset : str or None
        Id of the WordNet synset that covers all groups below, if the name is one.
    children : tuple of TreeNode
        The groups below, the largest first; none for a cluster.
    """

    name: str
    size: int
    cluster: int | None = None
    synset: str | None = None
    children: tuple[TreeNode, ...] = ()

    @property
    def clusters(self) -> tuple[int, ...]:
        """Numbers of all clusters at or below, in the order of the tree."""
        if self.cluster is not None:
            return (self.cluster,)
        return tuple(number for child in self.children for number in child.clusters)

    @property
    def depth(self) -> int:
        """Levels below: 0 for a cluster, 1 for a group of clusters."""
        return 1 + max(child.depth for child in self.children) if self.children else 0

    def paths(self) -> dict[int, tuple[str, ...]]:
        """Return the names on the way to every cluster.

        Returns
        -------
        dict of int to tuple of str
            For each cluster the names of the groups that it is in, without the root, and its own
            name last.
        """
        if self.cluster is not None:
            return {self.cluster: (self.name,)}
        found: dict[int, tuple[str, ...]] = {}
        for child in self.children:
            # A child's own name comes first, unless the child is a cluster.
            own = () if child.cluster is not None else (child.name,)
            found |= {number: (*own, *names) for number, names in child.paths().items()}
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the tree as JSON knows it.

        Returns
        -------
        dict
            The fields by name; "children" are trees.
        """
        return {
            "name": self.name,
            "size": self.size,
            "cluster": self.cluster,
            "synset": self.synset,
            "children": [child.to_json() for child in self.children],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, indent: int) -> Iterator[str]:
        yield f"{'  ' * indent}{self.name} ({self.size:,})"
        for child in self.children:
            yield from child._lines(indent + 1)


def find_levels(
    graph: csr_array,
    labels: NDArray[np.intp],
    semantic: NDArray[Any] | None,
    counts: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the levels of a tree for the manifest: the group of every cluster, coarsest first.

    Clusters are in the order of their numbers. Their `sizes` tell later whether the levels still
    belong to the clusters.
    """
    from nouncut.method.hierarchy import join_clusters, nested_levels

    joins = join_clusters(graph, labels, semantic)
    levels = nested_levels(joins, counts)
    return {"sizes": np.bincount(labels).tolist(), "levels": [part.tolist() for part in levels]}


def run_tree(run: Run, counts: Sequence[int] | None = None) -> TreeNode:
    """Return the tree of a run; see `Run.tree`.

    `counts` are numbers of groups, by default those that the run was made with. Edits do not move
    groups in the tree: a new group lies where the cluster lies that most of its images are from.
    """
    numbers = run.clusters["cluster"].to_numpy()
    labels = _positions(run.labels, numbers)
    sizes = np.bincount(labels[labels >= 0], minlength=len(numbers))
    known = run.computed.levels if counts is None else _levels(run.computed, counts)
    computed = np.unique(run.computed.labels, return_inverse=True)[1]
    main = _main_clusters(labels, computed, len(numbers))
    return _build(run, numbers, sizes, [np.array(level, dtype=np.intp)[main] for level in known])


def computed_levels(run: Run) -> list[list[int]]:
    """Return the levels of a run without edits: those it has kept, or those in its graph."""
    kept = _kept_levels(run.manifest.get("tree"), np.unique(run.labels, return_counts=True)[1])
    if kept is not None:
        return kept
    return _levels(run, (run.manifest.get("settings") or {}).get("levels"))


def _levels(run: Run, counts: Sequence[int] | None) -> list[list[int]]:
    """Find the levels of a run without edits in its graph; its clusters may leave out numbers."""
    if not run.has_array("graph_indptr"):
        return []
    semantic = run.array("semantic") if run.has_array("semantic") else None
    labels = np.unique(run.labels, return_inverse=True)[1]
    return list(find_levels(run.graph(), labels, semantic, counts)["levels"])


def _main_clusters(
    labels: NDArray[np.intp], computed: NDArray[np.intp], n_groups: int
) -> NDArray[np.intp]:
    """Return the computed cluster that most images of every group are from."""
    n_clusters = int(computed.max(initial=0)) + 1
    placed = labels >= 0
    pairs, counts = np.unique(labels[placed] * n_clusters + computed[placed], return_counts=True)
    main = np.zeros(n_groups, dtype=np.intp)
    order = np.argsort(counts, kind="stable")  # the most frequent is written last
    main[pairs[order] // n_clusters] = pairs[order] % n_clusters
    return main


def _positions(labels: NDArray[np.intp], numbers: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows of the clusters that images are in; -1 for images in none."""
    order = np.argsort(numbers, kind="stable")
    at = np.minimum(np.searchsorted(numbers, labels, sorter=order), len(numbers) - 1)
    return np.where(numbers[order[at]] == labels, order[at], -1)


def _kept_levels(kept: Any, sizes: NDArray[np.intp]) -> list[list[int]] | None:
    """Return the levels of a manifest; None if edits have changed the clusters since."""
    if not isinstance(kept, dict) or kept.get("sizes") != sizes.tolist():
        return None
    levels = kept.get("levels")
    is_sound = isinstance(levels, list) and all(
        isinstance(level, list)
        and len(level) == len(sizes)
        and all(type(group) is int and 0 <= group < len(sizes) for group in level)
        for level in levels
    )
    return levels if is_sound else None


def _build(
    run: Run, numbers: NDArray[Any], sizes: NDArray[np.intp], levels: Sequence[NDArray[np.intp]]
) -> TreeNode:
    names = run.names
    nodes = [
        TreeNode(name, int(size), int(number))
        for name, size, number in zip(names, sizes, numbers, strict=True)
    ]
    groups = [_groups(level, sizes) for level in levels]
    parents = _parent_names(run, [group for level in groups for group in level])
    # The finest level first: its groups become the children of the next.
    members = [(node, {place}) for place, node in enumerate(nodes)]
    for level in reversed(groups):
        members = [_joined(group, members, parents) for group in level]
    top = tuple(node for node, _ in _largest_first(members))
    return TreeNode(_ROOT, int(sizes.sum()), children=top)


def _groups(level: NDArray[np.intp], sizes: NDArray[np.intp]) -> list[tuple[int, ...]]:
    """Return the clusters of every group of a level, the largest cluster first."""
    order = np.argsort(-sizes, kind="stable")
    return [tuple(order[level[order] == group].tolist()) for group in np.unique(level)]


def _joined(
    group: tuple[int, ...],
    members: Sequence[tuple[TreeNode, set[int]]],
    parents: Mapping[tuple[int, ...], Any],
) -> tuple[TreeNode, set[int]]:
    """Return the node of a group; a group of one member is the member itself."""
    own = set(group)
    below = _largest_first([member for member in members if member[1] <= own])
    if len(below) == 1:
        return below[0]
    children = tuple(node for node, _ in below)
    name, synset = parents[group]
    size = sum(child.size for child in children)
    return TreeNode(name, size, None, synset and synset.id, children), own


def _largest_first(
    members: Sequence[tuple[TreeNode, set[int]]],
) -> list[tuple[TreeNode, set[int]]]:
    return sorted(members, key=lambda member: -member[0].size)


def _parent_names(run: Run, groups: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], Any]:
    """Name every group of several clusters once."""
    from nouncut.words.parent_names import cluster_senses, name_parents

    wanted = list(dict.fromkeys(group for group in groups if len(group) > 1))
    if not wanted:
        return {}
    rows = run.clusters.select(["name", "gloss", "guess"]).to_pylist()
    senses = [
        cluster_senses(row["name"], row["gloss"] or "", guess=bool(row["guess"])) for row in rows
    ]
    found = name_parents(wanted, [row["name"] for row in rows], senses)
    return dict(zip(wanted, found, strict=True))
