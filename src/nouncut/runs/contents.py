"""The manifest, tables and arrays of a finished clustering."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.rows import Projection
from nouncut.compute.threads import count_threads
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.familiarity import least_familiarity
from nouncut.method.membership import Membership
from nouncut.runs.collection import Collection, familiar_rows
from nouncut.runs.exemplars import borderline_images, cohesion, typical_images
from nouncut.runs.grouping import Groups
from nouncut.runs.job import Job
from nouncut.runs.tables import (
    ASSIGNMENTS_SCHEMA,
    CLUSTERS_SCHEMA,
    images_table,
    path_texts,
    table_of,
)
from nouncut.runs.tree import find_levels
from nouncut.runs.vocabulary import Vocabulary, chosen_filter
from nouncut.runs.writer import RunContents

_NO_MODEL = "Nouns were not used, because the model that made the features is not known."


def run_contents(
    collection: Collection,
    vocabulary: Vocabulary | None,
    groups: Groups,
    points: NDArray[Any],
    job: Job,
) -> RunContents:
    """Gather everything that is written to the run directory."""
    with job.stage("writing the run"):
        return RunContents(
            manifest=result_manifest(collection, vocabulary, groups, job),
            assignments=assignments_table(path_texts(collection.images.paths), groups),
            clusters=clusters_table(groups, collection.images.hashes),
            images=_images(collection),
            arrays=run_arrays(collection, groups.model) | {"layout": points},
        )


def result_manifest(
    collection: Collection, vocabulary: Vocabulary | None, groups: Groups, job: Job
) -> dict[str, Any]:
    """Return the fields of the manifest that describe the result."""
    return {
        "source_kind": collection.source,
        "model": _model(collection),
        "looks": [
            {"name": encoder.name, "fingerprint": encoder.fingerprint}
            for encoder in collection.looks
        ],
        "nouns": {
            "candidates": len(vocabulary.words) if vocabulary else 0,
            "words": groups.nouns.words if groups.nouns else [],
        },
        "used": _values_used(collection, groups, job),
        "n_encoded": collection.n_encoded,
        "least_familiarity": least_familiarity(
            familiar_rows(collection), n_threads=count_threads(job.n_jobs)
        ),
        **_result(groups, job),
        "tree": find_levels(
            groups.model.graph_, groups.model.labels_, collection.semantic, job.settings.levels
        ),
        "machine": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
        },
    }


def _model(collection: Collection) -> dict[str, Any]:
    if collection.model is None:
        return {"name": None, "fingerprint": None, "embedded": False, "reason": _NO_MODEL}
    encoder = collection.model.encoder
    return {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "embedded": encoder.name == "mini",
        "reason": collection.model.reason,
    }


def _values_used(collection: Collection, groups: Groups, job: Job) -> dict[str, Any]:
    """Return the values of settings that were left open."""
    model, settings = groups.model, job.settings
    return {
        "n_clusters": model.n_clusters_,
        "model": collection.model.encoder.name if collection.model else None,
        "tau": model.tau_,
        "semantic_weight": model.semantic_weight_,
        "n_neighbors": model.n_neighbors_,
        "solver": model.solver_,
        "noun_filter": chosen_filter(settings) if groups.nouns else None,
        "compare": settings.comparison,
    }


def _result(groups: Groups, job: Job) -> dict[str, Any]:
    model, count = groups.model, groups.count
    weights = zip(job.settings.prompts, model.prompt_weights_.tolist(), strict=False)
    return {
        "n_copies": int(np.sum(model.originals_ != np.arange(len(model.originals_)))),
        "n_outliers": len(groups.outliers),
        "n_isolated": len(model.isolated_),
        "prompts": [{"template": t, "weight": w} for t, w in weights] if groups.nouns else [],
        "objective": model.objective_.tolist(),
        "weight_steps": model.weight_steps_.tolist(),
        "eigenvalues": model.spectrum_.tolist(),
        "tau": model.tau_,
        "noun_trust": model.noun_trust_ and model.noun_trust_._asdict(),
        "solver": model.solver_,
        "n_neighbors": model.n_neighbors_,
        "membership_temperature": model.membership_temperature_,
        "cluster_count": count and asdict(count),
    }


def assignments_table(paths: Sequence[str], groups: Groups) -> pa.Table:
    """Return one row per image: cluster, second choice, whether it is an outlier."""
    names = np.array([name.name for name in groups.names], dtype=object)
    is_outlier = np.zeros(len(paths), dtype=bool)
    is_outlier[groups.outliers] = True
    columns = {"path": paths, "outlier": is_outlier}
    return table_of(columns | membership_columns(groups.membership, names), ASSIGNMENTS_SCHEMA)


def membership_columns(found: Membership, names: NDArray[Any]) -> dict[str, Any]:
    """Return the columns about every image's cluster and second choice."""
    has_no_second = found.second < 0
    return {
        "cluster": found.label,
        "name": names[found.label],
        "confidence": found.confidence,
        "second_cluster": pa.array(found.second, mask=has_no_second),
        "second_name": pa.array(names[found.second], type=pa.string(), mask=has_no_second),
        "second_confidence": found.second_confidence,
    }


def clusters_table(groups: Groups, hashes: tuple[str, ...] | None = None) -> pa.Table:
    """Return one row per cluster: name, size, cohesion, typical and borderline images."""
    graph, labels = groups.model.graph_, groups.model.labels_
    columns = {
        "cluster": np.arange(len(groups.names)),
        "name": [name.name for name in groups.names],
        "more_words": [list(name.more_words) for name in groups.names],
        "gloss": [name.gloss for name in groups.names],
        "name_confidence": [name.confidence for name in groups.names],
        "guess": [name.guess for name in groups.names],
        "size": np.bincount(labels, minlength=len(groups.names)),
        "cohesion": cohesion(graph, labels),
        "exemplars": typical_images(graph, labels, hashes),
        "borderline": borderline_images(groups.membership),
    }
    return table_of(columns, CLUSTERS_SCHEMA)


def _images(collection: Collection) -> pa.Table:
    images = collection.images
    sizes = file_sizes(images.paths) if collection.source == "images" else None
    return images_table(images.paths, hashes=images.hashes, sizes=sizes, skipped=images.skipped)


def run_arrays(collection: Collection, model: NTKSpectralClustering) -> dict[str, NDArray[Any]]:
    """Return the arrays of a run: features, graph, and what new images need."""
    graph = model.graph_
    arrays: dict[str, NDArray[Any] | None] = {
        "features": collection.visual,
        "semantic": collection.semantic,
        "lengths": collection.lengths,
        "embedding": model.embedding_,
        "graph_data": graph.data,
        "graph_indices": graph.indices,
        "graph_indptr": graph.indptr,
        **model.to_arrays(),
        **_view_arrays(collection),
    }
    return {name: array for name, array in arrays.items() if array is not None}


def _view_arrays(collection: Collection) -> dict[str, NDArray[Any]]:
    """Return what new images need to be viewed alike; `nouncut.runs.predict` reads it."""
    views = {f"view_{number}": view for number, view in enumerate(collection.views)}
    return {
        f"{name}_{part}": array
        for name, view in (views | {"view": collection.word_view}).items()
        if view
        for part, array in zip(Projection._fields, view, strict=True)
    }


def file_sizes(paths: Sequence[str | Path]) -> list[int | None]:
    """Return the sizes of files; None for those that are gone."""
    return [_size(path) for path in paths]


def _size(path: str | Path) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None
