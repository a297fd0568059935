"""New images into the clusters of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.progress import Progress
from nouncut.compute.threads import count_threads
from nouncut.errors import InputError, printable_path
from nouncut.images.find import SkippedFile
from nouncut.method.familiarity import familiarity
from nouncut.method.membership import cluster_membership
from nouncut.runs.collection import Collection, WordView, open_sources, read_collection
from nouncut.runs.contents import texts_of
from nouncut.runs.fitted import MODEL_ARRAYS, restore_model
from nouncut.runs.run import Run
from nouncut.store.store import FeatureStore


@dataclass(frozen=True)
class Prediction:
    """New images in the clusters of a run."""

    paths: tuple[str | Path, ...]
    table: pa.Table
    skipped: tuple[SkippedFile, ...]


def predict_images(
    run: Run,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    store: FeatureStore | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> Prediction:
    """Put new images into the clusters of a run. Nothing is fitted again.

    Parameters
    ----------
    run : Run
        A finished run.
    paths : path or iterable of path
        What `nouncut.images.find.scan_images` takes; a file of features for a run made from one.
    store : FeatureStore, optional
        Where features are kept; the user's cache by default.
    progress : callable, optional
        Called with the stage, the number done and of all.
    n_jobs : int, default=-1
        Threads; all cores by default.

    Returns
    -------
    Prediction
        Where every image belongs, and how surely.

    Raises
    ------
    nouncut.errors.InputError
        If the run was made with another model than can be had now.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nouncut import cluster_images
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> from nouncut.runs.predict import predict_images
    >>> data = make_clip_like(n_images=300, n_clusters=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "clip.npy")
    ...     np.save(path, data.features)
    ...     run = cluster_images(path, 3, output=Path(folder, "run"))
    ...     predict_images(run, path).table["cluster"].to_pylist() == run.labels.tolist()
    True
    """
    queries, visual = _read_queries(run, paths, store or FeatureStore(), progress, n_jobs)
    has_nouns = run.has_array("model_noun_features")
    semantic = queries.semantic if has_nouns else None
    known = run.array("features")
    model = restore_model(
        {name: run.array(name) for name in MODEL_ARRAYS if run.has_array(name)},
        known,
        run.array("semantic") if has_nouns else None,
        run.array("embedding"),
        run.labels,
        n_jobs=n_jobs,
    )
    embedding, labels = model.place(visual, semantic)
    found = cluster_membership(
        embedding,
        model.cluster_centers_,
        labels=labels,
        temperature=run.manifest["membership_temperature"],
    )
    known_kind = familiarity(known, visual, n_threads=count_threads(n_jobs))
    names = np.array(run.names, dtype=object)
    alone = found.second < 0
    table = pa.table(
        {
            "path": texts_of(queries.paths),
            "cluster": pa.array(found.label, pa.int32()),
            "name": pa.array(names[found.label], pa.string()),
            "confidence": pa.array(found.confidence.astype(np.float32)),
            "second_cluster": pa.array(found.second, pa.int32(), mask=alone),
            "second_name": pa.array(names[found.second], pa.string(), mask=alone),
            "second_confidence": pa.array(found.second_confidence.astype(np.float32)),
            "unseen": known_kind < run.manifest["least_familiarity"],
        }
    )
    return Prediction(queries.paths, table, queries.skipped)


def _read_queries(
    run: Run,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    store: FeatureStore,
    progress: Progress | None,
    n_jobs: int | None,
) -> tuple[Collection, NDArray[Any]]:
    """Return new images, and what they are compared with the run's images by."""
    model = run.manifest["model"]
    queries = read_collection(
        open_sources([paths] if isinstance(paths, str | os.PathLike) else list(paths)),
        model["name"] or "auto",
        store,
        center=run.array("center") if run.has_array("center") else None,
        progress=progress,
        n_jobs=n_jobs,
    )
    if (queries.model and queries.model.encoder.fingerprint) != model["fingerprint"]:
        raise InputError(
            f"{printable_path(run.directory)} was made with another version of {model['name']}, "
            "whose features cannot be compared with this one's. Cluster the images again."
        )
    if run.has_array("view_basis") and queries.semantic is not None:
        view = WordView(run.array("view_center"), run.array("view_basis"))
        return queries, view(queries.semantic)
    return queries, queries.visual
