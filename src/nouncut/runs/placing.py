"""New images placed among those of a run: clusters, edges of the graph, points on the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import blas_threads, count_threads
from nouncut.errors import InputError, printable_path
from nouncut.method.graphs import expand_graph
from nouncut.method.labels import nearest_center
from nouncut.method.membership import Membership, cluster_membership
from nouncut.method.placement import Placement, connect_images, place_images
from nouncut.runs.collection import Collection
from nouncut.runs.predict import model_arrays
from nouncut.runs.run import Run

# The rows of images that updates added.
PLACED = "placed"
_Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Grown:
    """The rows of a run that are kept, followed by new images.

    `originals` are, among all of these, the first images with the same contents.
    """

    run: Run
    kept: _Rows
    new: Collection | None
    originals: _Rows
    n_jobs: int | None = -1

    def __len__(self) -> int:
        return len(self.originals)

    @property
    def n_new(self) -> int:
        """Number of new images."""
        return len(self) - len(self.kept)

    @property
    def arrivals(self) -> _Rows:
        """The rows of the new images."""
        return np.arange(len(self.kept), len(self))

    @cached_property
    def placed(self) -> _Rows:
        """The rows that this update and others before it added."""
        if not self.run.has_array(PLACED):
            return self.arrivals
        earlier = np.flatnonzero(np.isin(self.kept, self.run.array(PLACED)))
        return np.concatenate([earlier, self.arrivals])

    @cached_property
    def sources(self) -> _Rows:
        """The rows of the run whose edges the kept rows have.

        The first copy that is left has those of an original that is gone.
        """
        n_kept, n_before = len(self.kept), len(self.run.assignments)
        first = first_of_each(self.run.images["hash"].slice(0, n_before).to_pylist())
        is_first = self.originals[:n_kept] == np.arange(n_kept)
        return np.where(is_first, first[self.kept], self.kept)

    @cached_property
    def placement(self) -> Placement:
        """How the edges of new images to the kept ones are weighted."""
        run = self.run
        with_nouns = run.has_array("model_noun_features")
        rows = tuple(
            unit_rows(np.asarray(run.array(name), np.float32))
            for name in (("features", "semantic") if with_nouns else ("features",))
        )
        placement = Placement.from_arrays(model_arrays(run), rows)
        at = np.full(len(run.labels), -1)
        at[self.sources] = np.arange(len(self.sources))
        left = np.flatnonzero(at[placement.images] >= 0)
        if len(left) < len(run.array("model_centers")):
            raise InputError(
                f"Hardly any image of {printable_path(run.directory)} is left. Cluster the images "
                "again with `recluster=True`."
            )
        return placement.take(left, at[placement.images[left]])

    def array(self, name: str) -> NDArray[Any]:
        """Return features of all images, semantic features, or lengths."""
        known = np.asarray(self.run.array(name))[self.kept]
        if self.new is None:
            return known
        # The same image in another batch may have features that differ in their last digits.
        return np.concatenate([known, getattr(self.new, _FIELDS[name])])[self.originals]

    @cached_property
    def embedding(self) -> NDArray[Any]:
        """Directions of all images in the embedding."""
        known = np.asarray(self.run.array("embedding"))
        found = np.empty((len(self), known.shape[1]), known.dtype)
        found[: len(self.kept)] = known[self.kept]
        distinct = self._distinct_arrivals
        if len(distinct):
            with blas_threads(1):
                found[distinct] = place_images(
                    self.placement, *self._rows(distinct), count_threads(self.n_jobs)
                )
        found[self.arrivals] = found[self.originals[self.arrivals]]
        return found

    def membership(self, temperature: float) -> Membership:
        """Return the clusters of the new images; copies are where their originals are."""
        centers, n_kept = self.run.array("model_centers"), len(self.kept)
        embedding = self.embedding[self.arrivals]
        labels = np.empty(len(self), dtype=np.intp)
        labels[:n_kept] = self.run.computed.labels[self.kept]
        labels[n_kept:] = nearest_center(embedding, centers)
        own = labels[self.originals[self.arrivals]]
        return cluster_membership(embedding, centers, labels=own, temperature=temperature)

    @cached_property
    def graph(self) -> csr_array:
        """The graph of the run, with edges of the new images."""
        n_kept, n = len(self.kept), len(self)
        old = csr_array(self.run.graph()[self.sources][:, self.sources])
        distinct = self._distinct_arrivals
        more = self.placed[self.placed < n_kept]
        more = np.setdiff1d(more[self.originals[more] == more], self.placement.images)
        edges = connect_images(
            self.placement, self._rows(more), self._rows(distinct), count_threads(self.n_jobs)
        )
        ends = np.concatenate([self.placement.images, more, distinct])
        counts = np.zeros(n, dtype=np.intp)
        counts[distinct] = np.diff(edges.indptr)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        directed = csr_array((edges.data, ends[edges.indices], indptr), shape=(n, n))
        graph = csr_array(
            expand_graph(old, np.arange(n_kept), n)
            + directed.maximum(directed.T.tocsr())
            + self._copies()
        )
        graph.sort_indices()
        return graph

    def points(self, labels: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the map: new images lie among their neighbours of the same cluster."""
        known = np.asarray(self.run.map(), np.float32)[self.kept]
        n_kept, rng = len(self.kept), np.random.default_rng(0)
        points = np.concatenate([known, np.zeros((self.n_new, 2), np.float32)])
        # Images are about this far apart.
        spread = 1 / max(1, np.sqrt(len(self)))
        for row in self.arrivals:
            edges = slice(self.graph.indptr[row], self.graph.indptr[row + 1])
            near, weights = self.graph.indices[edges], self.graph.data[edges]
            fit = (near < n_kept) & (labels[near] == labels[row])
            members = near[fit] if fit.any() else np.flatnonzero(labels[:n_kept] == labels[row])
            if not len(members):
                members = np.arange(n_kept)
            points[row] = np.average(
                known[members], axis=0, weights=weights[fit] if fit.any() else None
            )
        points[n_kept:] += rng.uniform(-spread / 2, spread / 2, (self.n_new, 2))
        points[n_kept:] = np.clip(points[n_kept:], 0, 1)
        return points

    def arrays(self, labels: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        """Return all arrays of the grown run."""
        run, graph = self.run, self.graph
        arrays = {name: run.array(name) for name in run.array_names}
        arrays |= {name: self.array(name) for name in _FIELDS if name in arrays}
        arrays |= {
            name: array for name, array in self.placement.to_arrays().items() if name in arrays
        }
        return arrays | {
            "embedding": self.embedding,
            "graph_data": graph.data,
            "graph_indices": graph.indices,
            "graph_indptr": graph.indptr,
            "layout": self.points(labels),
            PLACED: self.placed,
        }

    @property
    def _distinct_arrivals(self) -> _Rows:
        new = self.arrivals
        return np.asarray(new[self.originals[new] == new])

    def _rows(self, rows: _Rows) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return unit features for looks and for words."""
        looks = unit_rows(self.array("features")[rows])
        if not self.run.has_array("model_noun_features"):
            return looks, looks
        return looks, unit_rows(self.array("semantic")[rows])

    def _copies(self) -> csr_array:
        """Return edges of weight 1 between new copies and their originals."""
        copies = self.arrivals[self.originals[self.arrivals] != self.arrivals]
        first = self.originals[copies]
        ends = np.concatenate([copies, first]), np.concatenate([first, copies])
        return csr_array((np.ones(2 * len(copies)), ends), shape=(len(self), len(self)))


_FIELDS = {"features": "visual", "semantic": "semantic", "lengths": "lengths"}


def first_of_each(hashes: Sequence[str]) -> _Rows:
    """Return the first row with the same hash for every row."""
    _, first, inverse = np.unique(np.array(hashes), return_index=True, return_inverse=True)
    return np.asarray(first[inverse])
