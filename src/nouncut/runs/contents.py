"""What a clustering leaves behind: the manifest, tables and arrays of its run."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.threads import count_threads
from nouncut.method.count import ClusterCount
from nouncut.method.familiarity import least_familiarity
from nouncut.runs.collection import Collection
from nouncut.runs.fitted import fitted_arrays
from nouncut.runs.grouping import Groups, borderline_images, cohesion, typical_images
from nouncut.runs.settings import Settings
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table, unicode_text


def assignments_table(paths: list[str], groups: Groups) -> pa.Table:
    """Return where every image belongs."""
    found, names = groups.membership, np.array([name.name for name in groups.names], dtype=object)
    alone = found.second < 0
    is_outlier = np.zeros(len(paths), dtype=bool)
    is_outlier[groups.outliers] = True
    columns = {
        "path": paths,
        "cluster": found.label,
        "name": names[found.label],
        "confidence": found.confidence,
        "second_cluster": pa.array(found.second, mask=alone),
        "second_name": pa.array(names[found.second], type=pa.string(), mask=alone),
        "second_confidence": found.second_confidence,
        "outlier": is_outlier,
    }
    return _table(columns, ASSIGNMENTS_SCHEMA)


def clusters_table(groups: Groups, hashes: tuple[str, ...] | None = None) -> pa.Table:
    """Return what is told about every cluster."""
    graph, labels = groups.model.graph_, groups.model.labels_
    columns = {
        "cluster": np.arange(len(groups.names)),
        "name": [name.name for name in groups.names],
        "more_words": [list(name.more_words) for name in groups.names],
        "gloss": [name.gloss for name in groups.names],
        "size": np.bincount(labels, minlength=len(groups.names)),
        "cohesion": cohesion(graph, labels),
        "exemplars": typical_images(graph, labels, hashes),
        "borderline": borderline_images(groups.membership),
    }
    return _table(columns, CLUSTERS_SCHEMA)


def seen_files(collection: Collection) -> pa.Table:
    """Return the table of all files that a collection was made from."""
    sizes = None
    if collection.source == "images":
        sizes = [_size(path) for path in collection.paths]
    return images_table(
        collection.paths, hashes=collection.hashes, sizes=sizes, skipped=collection.skipped
    )


def run_arrays(
    collection: Collection,
    visual: NDArray[Any],
    groups: Groups,
    extra: dict[str, NDArray[Any]],
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a run: features, embedding, graph, and what places new images."""
    graph = groups.model.graph_
    arrays = {
        "features": visual,
        "embedding": groups.model.embedding_,
        "graph_data": graph.data,
        "graph_indices": graph.indices,
        "graph_indptr": graph.indptr,
        **fitted_arrays(groups.model),
        **extra,
    }
    if collection.semantic is not None:
        arrays["semantic"] = collection.semantic
    if collection.center is not None:
        arrays["center"] = collection.center
    return arrays


def result_manifest(
    collection: Collection,
    visual: NDArray[Any],
    groups: Groups,
    settings: Settings,
    count: ClusterCount | None,
    n_jobs: int | None = -1,
) -> dict[str, Any]:
    """Return what the manifest tells about the result."""
    model = groups.model
    prompts = zip(settings.templates, model.prompt_weights_.tolist(), strict=False)
    has_nouns = model.tau_ is not None
    return {
        "n_copies": int(np.sum(model.originals_ != np.arange(len(model.originals_)))),
        "n_outliers": len(groups.outliers),
        "n_encoded": collection.n_encoded,
        "prompts": [{"template": t, "weight": w} for t, w in prompts] if has_nouns else [],
        "objective": model.objective_.tolist(),
        "weight_steps": model.weight_steps_.tolist(),
        "eigenvalues": model.spectrum_.tolist(),
        "tau": model.tau_,
        "solver": model.solver_,
        "n_neighbors": model.n_neighbors_,
        "n_isolated": len(model.isolated_),
        "membership_temperature": groups.temperature,
        "least_familiarity": least_familiarity(visual, n_threads=count_threads(n_jobs)),
        "cluster_count": count
        and {
            "n_clusters": count.n_clusters,
            "candidates": [list(candidate) for candidate in count.candidates],
            "confidence": count.confidence,
        },
        "machine": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
        },
    }


def texts_of(paths: tuple[str | Path, ...]) -> list[str]:
    """Return paths as text that can be written."""
    return [unicode_text(os.fspath(path)) for path in paths]


def _table(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
    return pa.table(arrays, schema=schema)


def _size(path: str | Path) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None
