"""New images into the clusters of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.compute.progress import Progress, silent
from nouncut.compute.rows import Projection, unit_rows
from nouncut.compute.threads import count_threads
from nouncut.errors import (
    InputError,
    ModelError,
    NouncutError,
    ParameterError,
    printable_path,
)
from nouncut.images.find import SkippedFile
from nouncut.method.estimator import MODEL_ARRAYS, NTKSpectralClustering
from nouncut.method.familiarity import familiarity
from nouncut.method.membership import Membership, cluster_membership
from nouncut.runs.collection import Collection, collect_features, familiar_rows
from nouncut.runs.contents import membership_columns
from nouncut.runs.directory import MANIFEST, array_path, damaged
from nouncut.runs.edited_predictions import edited_predictions
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.looks import choose_looks, fingerprints, start_encoding
from nouncut.runs.run import Run
from nouncut.runs.settings import Settings
from nouncut.runs.sources import (
    Source,
    as_paths,
    choose_model,
    list_images,
    open_sources,
)
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, path_texts, table_of
from nouncut.store.store import FeatureStore

PREDICTIONS_SCHEMA = ASSIGNMENTS_SCHEMA.remove(
    ASSIGNMENTS_SCHEMA.get_field_index("outlier")
).append(pa.field("unseen", pa.bool_()))

_REQUIRED_ARRAYS = {
    "model_images",
    "model_degrees",
    "model_weights",
    "model_eigenvectors",
    "model_centers",
}


@dataclass(frozen=True)
class Prediction:
    """New images in the clusters of a run.

    Parameters
    ----------
    paths : tuple of path
        The images.
    table : pyarrow.Table
        Per image: path, cluster, name, confidence, second choice with its confidence, and whether
        it is unlike all images of the run ("unseen").
    skipped : tuple of SkippedFile
        Files that could not be opened, and why.
    """

    paths: tuple[str | Path, ...]
    table: pa.Table
    skipped: tuple[SkippedFile, ...]


def predict_images(
    run: Run,
    paths: AnyPath | Iterable[AnyPath],
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
    job = Job(model_settings(run), store or FeatureStore(), progress or silent, n_jobs)
    # Of a large run, new images are placed among those whose features are kept.
    known = run.sample or run
    queries = read_queries(known, open_sources(as_paths(paths)), job)
    found = _place(known, queries, job)
    known_kind = familiarity(
        known_familiar_rows(known), familiar_rows(queries), n_threads=count_threads(n_jobs)
    )
    names = np.array(run.all_clusters["name"].to_pylist(), dtype=object)
    columns = membership_columns(found, names) | {
        "path": path_texts(queries.images.paths),
        "unseen": known_kind < needed_field(known, "least_familiarity"),
    }
    table = table_of(columns, PREDICTIONS_SCHEMA)
    if run.edits:
        table = edited_predictions(run, table, queries.visual)
    return Prediction(queries.images.paths, table, queries.images.skipped)


def needed_field(run: Run, name: str) -> Any:
    """Return a field of the manifest that predictions need."""
    if run.manifest.get(name) is None:
        raise damaged(run.directory / MANIFEST, f"it has no {name!r}")
    return run.manifest[name]


def model_settings(run: Run) -> Settings:
    """Return settings with the models of a run."""
    looks = tuple(part["name"] for part in run.manifest.get("looks") or ())
    return Settings(model=needed_field(run, "model")["name"] or "auto", looks=looks or None)


def read_queries(run: Run, source: Source, job: Job, images: ImageSet | None = None) -> Collection:
    """Return new images with features that can be compared with those of the run.

    `images` are those of the source, if they are known already; all of them may be broken.
    """
    try:
        chosen, looks = choose_model(source, job), choose_looks(source, job)
    except ParameterError as error:
        names = " and ".join((job.settings.model, *(job.settings.looks or ())))
        raise ModelError(
            f"{printable_path(run.directory)} was made with {printable_path(names)}, which is not "
            "there any more. Put the model back, or cluster the images again with another one."
        ) from error
    _check_versions(run, fingerprints(chosen, looks))
    may_be_none = images is not None
    images = images or list_images(source, job)
    if encoding := start_encoding(images, chosen, looks, job):
        images = encoding.finish(may_be_none)
    views = [_view(run, f"view_{number}") for number in range(max(1, len(looks)))]
    try:
        queries = collect_features(source, images, chosen, views)
    except NouncutError:
        raise
    except ValueError as error:
        raise damaged(array_path(run.directory, "view_0_basis"), str(error)) from error
    by_words = _view(run, "view")
    if by_words and queries.semantic is not None:
        return replace(queries, visual=by_words(unit_rows(queries.semantic)), word_view=by_words)
    return queries


def known_familiar_rows(run: Run) -> NDArray[np.float32]:
    """Return the rows of the run's images that `familiar_rows` returned for them."""
    features, view = run.array("features"), _view(run, "view_0")
    if view is None or not run.has_array("lengths") or run.has_array("view_basis"):
        return np.asarray(unit_rows(features), np.float32)
    return view.cosine_rows(features, run.array("lengths"))


def _view(run: Run, name: str) -> Projection | None:
    if not run.has_array(f"{name}_basis"):
        return None
    return Projection(*(run.array(f"{name}_{part}") for part in Projection._fields))


def _check_versions(run: Run, versions: list[str]) -> None:
    """Raise if the models are not those of the run."""
    models = [needed_field(run, "model"), *(run.manifest.get("looks") or ())]
    known = [model for model in models if model.get("fingerprint")]
    if versions != [model["fingerprint"] for model in known]:
        names = " and ".join(str(model["name"]) for model in known) or "a model"
        raise InputError(
            f"{printable_path(run.directory)} was made with another version of {names}, "
            "whose features cannot be compared with this one's. Cluster the images again."
        )


def _place(run: Run, queries: Collection, job: Job) -> Membership:
    """Return the clusters of new images; nothing is fitted again."""
    has_nouns = run.has_array("model_noun_features")
    model = NTKSpectralClustering.from_arrays(
        model_arrays(run),
        run.array("features"),
        run.array("semantic") if has_nouns else None,
        run.array("embedding"),
        run.computed.labels,
        n_jobs=job.n_jobs,
    )
    embedding, labels = model.place(queries.visual, queries.semantic if has_nouns else None)
    return cluster_membership(
        embedding,
        model.cluster_centers_,
        labels=labels,
        temperature=needed_field(run, "membership_temperature"),
    )


def model_arrays(run: Run) -> dict[str, NDArray[Any]]:
    """Return the arrays of a run that place new images."""
    names = (name for name in MODEL_ARRAYS if name in _REQUIRED_ARRAYS or run.has_array(name))
    return {name: run.array(name) for name in names}


def known_rows(run: Run) -> NDArray[np.float32]:
    """Return unit rows of the run's images: their inner products say how much they look alike."""
    return np.asarray(unit_rows(known_familiar_rows(run)), np.float32)


def new_rows(
    run: Run, paths: Iterable[AnyPath], store: FeatureStore | None = None
) -> NDArray[np.float32]:
    """Return unit rows of new images that can be compared with `known_rows`."""
    job = Job(model_settings(run), store or FeatureStore())
    queries = read_queries(run.sample or run, open_sources(as_paths(paths)), job)
    return np.asarray(unit_rows(familiar_rows(queries)), np.float32)
