"""The tables and arrays of a run that one machine can open, from the files of all partitions.

Arrays with a row per image are mapped into memory and filled partition by partition.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.rows import Projection, unit_rows
from nouncut.compute.threads import count_threads
from nouncut.distributed.cells import Coupling, compared_rows
from nouncut.distributed.choices import Choices
from nouncut.distributed.fit import CUT, PartitionedFit, Shards
from nouncut.distributed.halo import read_rows
from nouncut.distributed.result import Finished
from nouncut.distributed.storage import Storage
from nouncut.images.find import SkippedFile
from nouncut.layout.map import map_images
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.graphs import add_copies
from nouncut.method.kernel import Kernel
from nouncut.method.membership import Membership, cluster_membership
from nouncut.method.placement import Placement
from nouncut.models.choose import ChosenEncoder
from nouncut.runs.collection import Collection
from nouncut.runs.contents import run_contents
from nouncut.runs.grouping import Groups, single_outliers
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.naming import name_groups
from nouncut.runs.tables import original_texts
from nouncut.runs.vocabulary import Vocabulary
from nouncut.runs.writer import RunContents

# A map of more images is drawn from this many of them.
_MAPPED = 50_000
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Source:
    """What the images are: shards of features or of images, and the model that encoded them."""

    kind: str  # "features" or "images"
    shards: Shards
    model: ChosenEncoder | None
    vocabulary: Vocabulary | None


def assemble_run(
    fit: PartitionedFit,
    finished: Finished,
    choices: Choices,
    source: Source,
    scratch: Path,
    job: Job,
) -> RunContents:
    """Gather everything that is written to the run directory; `scratch` holds arrays."""
    scratch.mkdir(parents=True, exist_ok=True)
    storage = fit.graph.engine.storage
    collection = _collect(storage, choices, source, scratch)
    with job.stage("collecting results"):
        model = _fitted_model(fit, finished, choices, collection, scratch)
        membership = _memberships(model)
        alone = single_outliers(model)
    with job.timed("naming groups"):
        names = name_groups(model.labels_, model.n_clusters_, collection, source.vocabulary, job)
    nouns = choices.nouns(storage)
    groups = Groups(model, choices.cluster_count, nouns, names, membership, alone)
    points = draw_map(model, job)
    return run_contents(collection, source.vocabulary, groups, points, job)


def _new_array(scratch: Path, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    found: NDArray[Any] = np.lib.format.open_memmap(
        scratch / f"{name}.npy", mode="w+", dtype=dtype, shape=shape
    )
    return found


def _collect(storage: Storage, choices: Choices, source: Source, scratch: Path) -> Collection:
    """Return all images with the features that compare them, in their own order."""
    how, shards = Coupling(**choices.coupling), source.shards
    view = Projection(**storage.read_several("choices/view.npz")) if how.has_view else None
    has_lengths = view is not None and not how.by_words
    arrays: dict[str, NDArray[Any]] = {}

    def fill(name: str, start: int, rows: NDArray[Any]) -> None:
        if name not in arrays:
            shape = (shards.n_images, *rows.shape[1:])
            arrays[name] = _new_array(scratch, name, shape, np.float32)
        arrays[name][start : start + len(rows)] = rows

    for shard, start in enumerate(shards.starts):
        raw = storage.read(f"features/{shard:05d}.npy")
        meaning = storage.read(f"semantic/{shard:05d}.npy") if how.has_semantic else raw
        fill("features", start, compared_rows(storage, raw, meaning, how))
        if has_lengths and view is not None:
            fill("lengths", start, view.lengths(raw))
        if source.model is not None:
            fill("semantic", start, meaning)
    return Collection(
        "images" if source.kind == "images" else "features",
        _read_images(storage, len(shards.counts)),
        arrays["features"],
        arrays.get("semantic"),
        () if how.by_words else (view,),
        arrays.get("lengths"),
        view if how.by_words else None,
        source.model,
        rows=_row_reader(storage, shards, source.model),
    )


RowReader = Callable[[NDArray[np.intp]], NDArray[Any]]


def _row_reader(storage: Storage, shards: Shards, model: ChosenEncoder | None) -> RowReader | None:
    """Return a function that reads rows as the model stores them, if they are kept."""
    if model is None:
        return None
    folder = "rows" if storage.size("rows/00000.npy") is not None else "features"
    return read_model_rows(storage, shards, folder)


def read_model_rows(storage: Storage, shards: Shards, folder: str) -> RowReader:
    """Return a function that reads the rows of ascending images from the shards of a folder."""
    starts = np.array(shards.starts)

    def read(members: NDArray[np.intp]) -> NDArray[Any]:
        owners = np.searchsorted(starts, members, side="right") - 1
        parts = [
            storage.read(f"{folder}/{shard:05d}.npy")[members[owners == shard] - starts[shard]]
            for shard in np.unique(owners)
        ]
        # Members ascend, and so do the shards.
        return np.concatenate(parts)

    return read


def _read_images(storage: Storage, n_shards: int) -> ImageSet:
    tables = [
        pq.read_table(io.BytesIO(storage.read_bytes(f"images/{shard:05d}.parquet")))
        for shard in range(n_shards)
    ]
    found = pa.concat_tables(table.filter(table["error"].is_null()) for table in tables)
    skipped = pa.concat_tables(table.filter(table["error"].is_valid()) for table in tables)
    hashes = None if found["hash"].null_count else tuple(found["hash"].to_pylist())
    reasons = zip(original_texts(skipped), skipped["error"].to_pylist(), strict=True)
    paths = tuple(original_texts(found))
    return ImageSet(paths, hashes, tuple(SkippedFile(path, reason) for path, reason in reasons))


def _fitted_model(
    fit: PartitionedFit,
    finished: Finished,
    choices: Choices,
    collection: Collection,
    scratch: Path,
) -> NTKSpectralClustering:
    """Return an estimator as if it had been fitted here."""
    storage, n_images = fit.graph.engine.storage, len(collection)
    how, n_clusters = Coupling(**choices.coupling), len(finished.centers)
    nouns = choices.nouns(storage)
    model = NTKSpectralClustering(n_clusters, random_state=fit.options.seed)
    rows, model.originals_ = _node_rows(fit, n_images)
    labels = np.empty(n_images, np.intp)
    embedding = _new_array(scratch, "embedding", (n_images, n_clusters), np.float32)
    is_cut = np.zeros(n_images, bool)
    for p, (a, b) in enumerate(zip(fit.graph.starts[:-1], fit.graph.starts[1:], strict=True)):
        labels[rows[a:b]] = storage.read(f"final/{p:05d}.npy")
        embedding[rows[a:b]] = unit_rows(storage.read(f"axes/{p:05d}.npy"))
        is_cut[rows[a:b]] = storage.read(f"is_cut/{p:05d}.npy")
    copies = np.flatnonzero(model.originals_ != np.arange(n_images))
    labels[copies] = labels[model.originals_[copies]]
    for start in range(0, len(copies), _ROWS_AT_ONCE):
        part = copies[start : start + _ROWS_AT_ONCE]
        embedding[part] = embedding[model.originals_[part]]
    graph = _whole_graph(fit, rows, n_images)
    model.graph_ = add_copies(graph, model.originals_) if len(copies) else graph
    model.isolated_ = np.flatnonzero(np.diff(model.graph_.indptr) == 0)
    model.labels_, model.embedding_ = labels, embedding
    model.n_clusters_, model.cluster_centers_ = n_clusters, finished.centers
    model._placement = _placement(fit, finished, how, rows, np.flatnonzero(is_cut), scratch)
    model.cluster_count_, model.n_neighbors_ = choices.cluster_count, fit.options.n_neighbors
    model.neighbor_recall_ = fit.search.recall
    model.eigenvalues_, model.spectrum_ = fit.spectrum[:n_clusters], fit.spectrum
    n_prompts, weights = len(nouns.features) if nouns else 0, fit.prompts.weights
    uneven = len(weights) >= n_prompts
    model.prompt_weights_ = weights if uneven else np.full(n_prompts, 1 / n_prompts)
    model.objective_, model.weight_steps_ = fit.prompts.objective, fit.prompts.steps
    model.n_iter_ = max(1, len(model.objective_))
    model.membership_temperature_ = finished.temperature
    model.tau_ = how.tau if choices.words else None
    model.semantic_weight_, model.noun_trust_ = (
        how.weight if choices.words else 0.0,
        choices.noun_trust,
    )
    model.solver_ = "spectral" if len(weights) > 1 else None
    model.nouns_ = choices.words or None
    return model


def _node_rows(fit: PartitionedFit, n_images: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the image of every node, and the original of every image."""
    storage, originals = fit.graph.engine.storage, np.arange(n_images)
    parts = []
    for p in range(fit.graph.n_partitions):
        own = np.array(storage.read(f"nodes/{p:05d}/rows.npy"))
        copies = storage.read(f"nodes/{p:05d}/copies.npy")
        originals[copies[:, 0]] = own[copies[:, 1]]
        parts.append(own)
    return np.concatenate(parts), originals


def _whole_graph(fit: PartitionedFit, rows: NDArray[np.int64], n_images: int) -> csr_array:
    """Return the graph that was cut, with images in their own order."""
    storage, found = fit.graph.engine.storage, []
    for p, (a, b) in enumerate(zip(fit.graph.starts[:-1], fit.graph.starts[1:], strict=True)):
        part = read_rows(storage, CUT, p).tocoo()
        nodes = np.concatenate([np.arange(a, b), storage.read(f"halo/{p:05d}.npy")])
        found.append(
            (part.data, rows[a + part.row].astype(np.int32), rows[nodes[part.col]].astype(np.int32))
        )
    data, sources, targets = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    graph = csr_array((data.astype(np.float64), (sources, targets)), shape=(n_images, n_images))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def _placement(
    fit: PartitionedFit,
    finished: Finished,
    how: Coupling,
    rows: NDArray[np.int64],
    images: NDArray[np.intp],
    scratch: Path,
) -> Placement:
    """Return what places new images; features are those of the run."""
    storage, parts = fit.graph.engine.storage, range(fit.graph.n_partitions)
    cut = np.concatenate([storage.read(f"is_cut/{p:05d}.npy") for p in parts])
    place = np.full(len(rows), -1)
    place[np.flatnonzero(cut)[np.argsort(rows[cut])]] = np.arange(len(images))
    n_graphs, n_axes = len(fit.prompts.weights), len(finished.centers)
    degrees = np.empty((n_graphs, len(images)))
    mean = np.empty(len(images))
    vectors = _new_array(scratch, "eigenvectors", (len(images), n_axes), np.float32)
    for p, (a, b) in enumerate(zip(fit.graph.starts[:-1], fit.graph.starts[1:], strict=True)):
        own = place[a:b] >= 0
        target = place[a:b][own]
        degrees[:, target] = storage.read(f"degrees/{p:05d}.npy")[own].T
        mean[target] = storage.read(f"average/degrees/{p:05d}.npy")[own, 0]
        vectors[target] = storage.read(f"axes/{p:05d}.npy")[own]
    prompts = list(storage.read("choices/nouns.npy")) if how.has_nouns else []
    nothing = np.empty((len(images), 0), np.float32)
    kernel = Kernel(nothing, nothing, prompts, how.tau, how.weight)
    weights = fit.prompts.weights
    return Placement(images, kernel, finished.n_placing, False, degrees, weights, mean, vectors)


def _memberships(model: NTKSpectralClustering) -> Membership:
    parts = [
        cluster_membership(
            model.embedding_[start : start + _ROWS_AT_ONCE],
            model.cluster_centers_,
            labels=model.labels_[start : start + _ROWS_AT_ONCE],
            temperature=model.membership_temperature_,
        )
        for start in range(0, len(model.labels_), _ROWS_AT_ONCE)
    ]
    return Membership(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def draw_map(model: NTKSpectralClustering, job: Job) -> NDArray[np.float32]:
    """Return the positions of the images; of many, only evenly spaced ones have a position."""
    n_images = len(model.labels_)
    rows = np.unique(np.linspace(0, n_images - 1, min(n_images, _MAPPED)).astype(np.intp))
    points = np.full((n_images, 2), np.nan, np.float32)
    graph = model.graph_ if len(rows) == n_images else csr_array(model.graph_[rows][:, rows])
    points[rows] = map_images(
        model.embedding_[rows],
        graph,
        model.labels_[rows],
        random_state=job.settings.random_state,
        n_threads=count_threads(job.n_jobs),
        progress=lambda _, done, total: job.progress("drawing the map", done, total),
    )
    return points
