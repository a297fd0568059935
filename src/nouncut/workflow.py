"""One call from a folder to named groups with a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from nouncut.compute.files import AnyPath
from nouncut.compute.progress import Progress, silent
from nouncut.errors import ParameterError
from nouncut.method.choices import Solver
from nouncut.models.noun_table import NounTable, is_noun_file
from nouncut.runs.cluster import make_run
from nouncut.runs.job import Job
from nouncut.runs.output import output_directory
from nouncut.runs.run import Run, run_directory
from nouncut.runs.settings import Comparison, Settings, check_levels
from nouncut.runs.sources import as_paths, is_feature_file
from nouncut.runs.update import Update, UpdateOptions, cluster_again, place_new
from nouncut.store.store import FeatureStore
from nouncut.words.nouns import NounFilter
from nouncut.words.prompts import PROMPTS
from nouncut.words.word_lists import read_words
from nouncut.words.wordnet import VISIBLE_LEXICONS

if TYPE_CHECKING:
    from distributed import Client

    from nouncut.runs.estimate import Estimate


def cluster_images(
    paths: AnyPath | Iterable[AnyPath],
    n_clusters: int | Literal["auto"] | Sequence[int] = "auto",
    *,
    levels: Sequence[int] | None = None,
    model: str = "auto",
    looks: str | Sequence[str] | None = None,
    vocabulary: AnyPath | Sequence[str] | None = None,
    lexicons: Sequence[str] | None = VISIBLE_LEXICONS,
    prompts: Sequence[str] = PROMPTS,
    tau: float | Literal["auto"] | None = None,
    semantic_weight: float | Literal["auto"] = "auto",
    n_neighbors: int | Literal["auto"] = "auto",
    random_state: int = 0,
    solver: Solver = "auto",
    noun_filter: NounFilter | None = None,
    compare: Comparison | None = None,
    output: AnyPath | None = None,
    replace: bool = False,
    store: FeatureStore | None = None,
    on_estimate: Callable[[Estimate], None] | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
    client: Client | None = None,
    resume: bool = False,
    partitions: int | None = None,
    coarsen: int | Literal["auto", "never"] = "auto",
    cache: AnyPath | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Run:
    """Sort images into named groups.

    Nothing is done twice: features are kept, and a finished run of the same images with the same
    settings is returned unchanged.

    Parameters
    ----------
    paths : path or iterable of path
        Folders, files, patterns and list files of images; or one file of ready-made features.
    n_clusters : int, "auto" or sequence of int, default="auto"
        Number of clusters; "auto" finds it. Of several numbers the largest is that of the
        clusters, and the others are `levels`.
    levels : sequence of int, optional
        Numbers of groups on the levels of `Run.tree` above the clusters; by default the few that
        persist, if any.
    model : str, default="auto"
        What `nouncut.models.choose.load_encoder` takes. For a file of features: the model that
        made them, or a file of noun vectors in the same space; otherwise nouns cannot be used.
    looks : str or sequence of str, optional
        Another model that compares images with each other, while `model` compares them with
        words; what `nouncut.models.choose.load_image_encoder` takes. Several count alike.
    vocabulary : path or sequence of str, optional
        Your own words, or a file of them: images are grouped by what these words distinguish.
    lexicons : sequence of str or None
        WordNet's lexicographer files to take nouns from, by default those of things that can be
        seen; None for all.
    prompts : sequence of str
        Templates, each with one ``{}``; the paper's seven by default.
    tau : float or "auto", optional
        Temperature of the softmax over nouns; by default the published 0.04 for CLIP, and "auto"
        for other models.
    semantic_weight : float or "auto", default="auto"
        How much words count beside looks, from 0 (looks alone) to 1 (the paper); "auto" trusts
        words as far as they agree with looks.
    n_neighbors : int or "auto", default="auto"
        Neighbours that every image keeps; "auto" is twice the root of the number of images per
        cluster, at most 30.
    random_state : int, default=0
        Seed of everything random.
    solver : {"auto", "exact", "spectral"}, default="auto"
        How the graphs of the prompts are combined; "exact" uses dense matrices.
    noun_filter : {"tac", "gradnorm", "none"}, optional
        How positive nouns are chosen; by default TAC's filter on WordNet, and no filter for up to
        1,000 words of your own.
    compare : {"looks", "words"}, optional
        Compare images by how they look, or by what the words say of them; by default "words" with
        your own vocabulary, and "looks" otherwise.
    output : path, optional
        The run directory; by default one in the folder ``nouncut-runs`` here.
    replace : bool, default=False
        Whether a run of other images or settings in `output` may be replaced.
    store : FeatureStore, optional
        Where features are kept; the user's cache by default.
    on_estimate : callable, optional
        Called with an `Estimate` before the long part.
    progress : callable, optional
        Called with the stage, the number done and the total.
    n_jobs : int, default=-1
        Threads; all cores by default. The result does not depend on it.
    client : distributed.Client, optional
        Cluster on a Dask cluster (``pip install "nouncut[distributed]"``). `paths` may then be
        URLs that fsspec knows, tars of images, parquet files with a column of images, and folders
        of feature files (.npy, .parquet).
    resume : bool, default=False
        Whether to continue an unfinished run of a cluster in `output`.
    partitions : int, optional
        Parts that the images are split into on a cluster: with more, tasks need less memory. By
        default as many as the memory of a worker asks for. A resumed run may have another number.
    coarsen : int, "auto" or "never", default="auto"
        On a cluster, group images into this many small clusters first, cut those, and place every
        image among them; "auto" does so if the vectors of all images would not fit in the memory
        of the cluster.
    cache : path or URL, optional
        Where a cluster keeps the features of files for other runs, until the files change.
    storage_options : mapping, optional
        What fsspec needs to open the URLs in `paths`, `output` and `cache`, such as the endpoint
        of an S3 server; by default what the environment says.

    Returns
    -------
    Run
        The finished run with its tables; a notebook shows it as a table with pictures.

    Raises
    ------
    nouncut.errors.NouncutError
        If a parameter is wrong, there are no two images that can be opened, the model cannot be
        loaded, or the run cannot be written.

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
    ...     run.clusters.select(["name", "size"]).to_pylist()
    [{'name': 'group 0', 'size': 100}, {'name': 'group 1', 'size': 100},
     {'name': 'group 2', 'size': 100}]
    """
    n_clusters, levels = _split_counts(n_clusters, levels)
    if is_noun_file(model):
        table = _read_nouns(model, paths, vocabulary, prompts)
        vocabulary, prompts, compare = table.nouns, table.prompts, compare or "looks"
    settings = Settings(
        n_clusters=n_clusters,
        levels=levels,
        model=_absolute_model(model),
        looks=_absolute_models(looks),
        vocabulary=_read_vocabulary(vocabulary, progress),
        lexicons=None if lexicons is None else tuple(lexicons),
        prompts=tuple(prompts),
        tau=tau,
        semantic_weight=semantic_weight,
        n_neighbors=n_neighbors,
        random_state=random_state,
        solver=solver,
        noun_filter=noun_filter,
        compare=compare,
    )
    if client is not None:
        from nouncut.distributed.cluster import ClusterOptions, run_on_cluster
        from nouncut.report.write import wanted_thumbnails

        options = ClusterOptions(
            resume,
            partitions,
            coarsen,
            replace=replace,
            storage_options=storage_options,
            cache=None if cache is None else os.fspath(cache),
            pictures=wanted_thumbnails,
            report=lambda run: _reported(run, progress, n_jobs),
        )
        job = Job(settings, store or FeatureStore(), progress or silent, n_jobs)
        return run_on_cluster(client, paths, output, job, options)
    if resume or partitions is not None:
        raise ParameterError("`resume` and `partitions` need a `client` of a Dask cluster.")
    sources = as_paths(paths)
    directory = output_directory(output, sources, settings.digest(sources), replace=replace)
    job = Job(settings, store or FeatureStore(), progress or silent, n_jobs)
    return _reported(make_run(sources, directory, job, on_estimate), progress, n_jobs)


def _reported(run: Run, progress: Progress | None, n_jobs: int | None) -> Run:
    """Write the report of a run that has none."""
    # A new run has no report yet; that of a known run was written by this version.
    if not run.report.exists():
        from nouncut.report.write import write_report

        write_report(run, progress=progress, n_jobs=n_jobs)
    return run


def update_run(
    run: Run | AnyPath,
    paths: AnyPath | Iterable[AnyPath] = (),
    *,
    new_groups: bool = False,
    recluster: bool = False,
    allow_missing: bool = False,
    dry_run: bool = False,
    store: FeatureStore | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> Update:
    """Bring a run up to date with its folders.

    New images join the groups that they fit best, and images that are gone leave theirs. All
    groups keep their numbers, names and edits. Images are the same if their contents are.

    Parameters
    ----------
    run : Run or path
        A run of images; its directory is written anew.
    paths : path or iterable of path, optional
        More folders, files, patterns and list files, which belong to the run from now on.
    new_groups : bool, default=False
        Make groups of images that fit no group but belong together; by default they are only
        proposed.
    recluster : bool, default=False
        Cluster all images again, as `cluster_images` does on a folder that has changed: groups
        that match earlier ones keep number, name and edits.
    allow_missing : bool, default=False
        Take images of folders that are not there as gone.
    dry_run : bool, default=False
        Find what would change, and write nothing but features of new images in the store.
    store : FeatureStore, optional
        Where features are kept; the user's cache by default.
    progress : callable, optional
        Called with the stage, the number done and the total.
    n_jobs : int, default=-1
        Threads; all cores by default. The result does not depend on it.

    Returns
    -------
    Update
        The run, and what changed.

    Raises
    ------
    nouncut.errors.NouncutError
        If the run was made from a file of features or by another model than can be had now, if
        one of its folders is missing, or if the run cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from nouncut import cluster_images, update_run
    >>> from nouncut.store.store import FeatureStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, words = FeatureStore(Path(folder, "store")), ["red", "blue"]
    ...     Path(folder, "photos").mkdir()
    ...     for n, colour in enumerate(["red", "tomato", "blue", "navy"]):
    ...         Image.new("RGB", (32, 32), colour).save(Path(folder, "photos", f"{n}.png"))
    ...     options = {"model": "mini", "vocabulary": words, "store": store}
    ...     run = cluster_images(Path(folder, "photos"), 2, output=Path(folder, "r"), **options)
    ...     Image.new("RGB", (32, 32), "crimson").save(Path(folder, "photos", "4.png"))
    ...     found = update_run(run, store=store)
    >>> found.changes.n_new, len(found.run.labels)
    (1, 5)
    """
    directory = run.directory if isinstance(run, Run) else run_directory(run)
    options = UpdateOptions(new_groups, allow_missing, dry_run)
    job = Job(Settings(), store or FeatureStore(), progress or silent, n_jobs)
    work = cluster_again if recluster else place_new
    found = work(directory, as_paths(paths), job, options)
    if not found.run.report.exists() and not dry_run:
        from nouncut.report.write import write_report

        write_report(found.run, progress=progress, n_jobs=n_jobs)
    return found


def _split_counts(
    n_clusters: int | Literal["auto"] | Sequence[int], levels: Sequence[int] | None
) -> tuple[int | Literal["auto"], tuple[int, ...] | None]:
    """Return the number of clusters, and those of the groups on the levels above."""
    if not isinstance(n_clusters, list | tuple):
        # Whatever else it is, the settings check it.
        single = cast(int | Literal["auto"], n_clusters)
        return single, None if levels is None else tuple(levels)
    counts = tuple(n_clusters)
    check_levels("n_clusters", counts)
    if levels is not None:
        raise ParameterError("`n_clusters` has several numbers already: leave `levels` out.")
    *above, finest = sorted(set(counts))
    return finest, tuple(above) or None


def _absolute_models(models: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if models is None:
        return None
    return tuple(map(_absolute_model, [models] if isinstance(models, str) else models))


def _absolute_model(model: str) -> str:
    """Return the folder or file of a model as an absolute path, and a name unchanged."""
    path = os.path.expanduser(model)
    is_path = is_noun_file(model) or (model not in ("auto", "mini") and os.path.isdir(path))
    return os.path.abspath(path) if is_path else model


def _read_nouns(
    model: str,
    paths: AnyPath | Iterable[AnyPath],
    vocabulary: AnyPath | Sequence[str] | None,
    prompts: Sequence[str],
) -> NounTable:
    """Read noun vectors, unless something else is to take their place."""
    if not all(map(is_feature_file, as_paths(paths))):
        raise ParameterError(
            "`model` is a file of noun vectors, which cannot encode images: pass a file of image "
            "features with it."
        )
    if vocabulary is not None or tuple(prompts) != PROMPTS:
        raise ParameterError(
            "`model` is a file of noun vectors, which has nouns and prompts of its own: leave "
            "`vocabulary` and `prompts` out."
        )
    return NounTable(model)


def _read_vocabulary(
    vocabulary: AnyPath | Sequence[str] | None, progress: Progress | None
) -> tuple[str, ...] | None:
    if vocabulary is None:
        return None
    if isinstance(vocabulary, str | os.PathLike):
        return tuple(read_words(vocabulary, progress=progress))
    return tuple(vocabulary)
