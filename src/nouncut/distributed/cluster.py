"""The way from images or features in many files to a run, on a Dask cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distributed import Client

from nouncut.compute.files import AnyPath
from nouncut.distributed.cells import Coupling, sample_shard
from nouncut.distributed.choices import Choices, make_choices
from nouncut.distributed.client import worker_memory
from nouncut.distributed.coarsen import (
    COARSE,
    MicroClusters,
    count_micro_clusters,
    make_micro_clusters,
)
from nouncut.distributed.contents import Source, assemble_run
from nouncut.distributed.encode import encode_shards, encoded_shards
from nouncut.distributed.fit import FitOptions, PartitionedFit, Shards, fit_shards
from nouncut.distributed.large import LARGEST_WHOLE, assemble_large_run
from nouncut.distributed.model import agree_on_model
from nouncut.distributed.pictures import make_pictures
from nouncut.distributed.plan import Plan, settle_plan
from nouncut.distributed.result import Finished, finish_labels
from nouncut.distributed.shards import Listing, list_shards
from nouncut.distributed.sizes import Sizes
from nouncut.distributed.sources import check_sources
from nouncut.distributed.stages import Engine, Task
from nouncut.distributed.storage import Options, Storage
from nouncut.distributed.upload import check_destination, upload_run
from nouncut.errors import InputError, ParameterError
from nouncut.method.graphs import choose_neighbors
from nouncut.models.choose import ChosenEncoder, load_encoder
from nouncut.runs.cluster import run_request
from nouncut.runs.job import Job, recorded_warnings
from nouncut.runs.output import earlier_run, output_directory
from nouncut.runs.remote import is_url
from nouncut.runs.run import Run, open_run
from nouncut.runs.sources import check_enough
from nouncut.runs.vocabulary import Vocabulary, start_vocabulary
from nouncut.runs.writer import RunContents, RunWriter

WORK = "work"
# Fewer images are clustered with dense matrices on one machine.
_FEWEST_IMAGES = 600


@dataclass(frozen=True)
class ClusterOptions:
    """How a cluster is used: what does not change the result, or only its last digits."""

    resume: bool = False
    n_partitions: int | None = None
    coarsen: int | str = "auto"
    keep_work: bool = False
    replace: bool = False
    storage_options: Options | None = None
    # Where the features of unchanged files are kept for other runs.
    cache: str | None = None
    # Tells which thumbnails a report shows: their rows, by the side in pixels.
    pictures: Callable[[Run], Mapping[int, Sequence[int]]] | None = None
    # Writes the report of a run.
    report: Callable[[Run], Run] | None = None


def run_on_cluster(
    client: Client,
    paths: AnyPath | Iterable[AnyPath],
    output: AnyPath | None,
    job: Job,
    options: ClusterOptions,
) -> Run:
    """Cluster images on a Dask cluster; the run is written here, and copied to a URL if given.

    What the tasks of the cluster share is in the folder `WORK` of `output`, which all workers
    must be able to reach.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    sources = [os.fspath(path) if is_url(path) else os.path.abspath(path) for path in given]
    url = os.fspath(output).rstrip("/") if output is not None and is_url(output) else None
    digest = job.settings.digest(sources)
    local = None if url is not None else output
    may_replace = options.replace or options.resume
    if url is not None:
        check_destination(url, digest, options.storage_options, replace=may_replace)
    directory = output_directory(local, sources, digest, replace=may_replace)
    work = f"{url}/{WORK}" if url else str(directory.absolute() / WORK)
    run = make_distributed_run(client, sources, directory, work, job, options)
    if options.report is not None:
        run = options.report(run)
    if url is not None:
        upload_run(run, url, options.storage_options)
    return run


def make_distributed_run(
    client: Client,
    sources: Sequence[str],
    directory: Path,
    work: str,
    job: Job,
    options: ClusterOptions,
) -> Run:
    """Cluster images on a Dask cluster and write the run; `work` is the folder of all tasks."""
    request, memory = run_request(sources, job.settings), worker_memory(client)
    check_sources(sources, options.storage_options)
    storage = Storage(work, options.storage_options)
    with RunWriter(directory) as writer, recorded_warnings() as messages:
        engine = Engine(client, storage, job.progress)
        if run := _known_run(directory, sources, request["digest"], memory, options):
            _leave(engine, run, options)
            return run
        writer.start(request)
        if options.replace and not options.resume:
            storage.remove("")
        listing = list_shards(storage, sources, memory, options.storage_options, job.progress)
        asked = Plan(
            request["digest"], [listing.digest], memory, options.n_partitions, str(options.coarsen)
        )
        plan = settle_plan(storage, asked, resume=options.resume)
        source = read_source(engine, listing, job, memory, options)
        choices, sizes = choose(engine, source, plan, job)
        fitted = fit_source(engine, source, choices, sizes, plan, job)
        with tempfile.TemporaryDirectory(dir=directory, prefix=WORK) as scratch:
            contents = assemble(fitted, choices, source, Path(scratch), job)
            about: dict[str, Any] = {"content": asked.content(), "seconds": job.seconds}
            about |= {
                "warnings": messages(),
                "stages": stage_counts(engine),
                "neighbor_recall": fitted.fit.search.recall,
            }
            contents.manifest.update(request | about)
            run = writer.finish(contents)
    _leave(engine, run, options)
    return run


def _leave(engine: Engine, run: Run, options: ClusterOptions) -> None:
    """Make the thumbnails that only workers can make, and remove the work files."""
    if options.pictures is not None and (found := encoded_shards(engine.storage)):
        make_pictures(engine, *found, run, options.pictures(run), options.storage_options)
    if not options.keep_work:
        engine.storage.remove("")


@dataclass(frozen=True)
class Fitted:
    """A fit of all images, or of micro-clusters of them."""

    fit: PartitionedFit
    finished: Finished
    micro: MicroClusters | None


def fit_source(
    engine: Engine, source: Source, choices: Choices, sizes: Sizes, plan: Plan, job: Job
) -> Fitted:
    """Cluster all images, or micro-clusters of them."""
    shards, coupling, q = source.shards, Coupling(**choices.coupling), choices.n_neighbors
    n_micro, micro = count_micro_clusters(plan.coarsen, sizes), None
    if n_micro is not None:
        n_landmarks = sizes.landmarks(choices.n_clusters)
        micro = make_micro_clusters(engine, shards, n_micro, coupling, n_landmarks)
        shards, coupling = micro.shards, micro.coupling
        inner = Storage(f"{engine.storage.url}/{COARSE}", engine.storage.options)
        engine = Engine(engine.client, inner, engine.progress, engine.counts)
        sizes = sizes._replace(n_images=shards.n_images)
        sample_shards(engine, shards, sizes, coupling.has_semantic, "sample-micro-clusters")
        if job.settings.n_neighbors == "auto":
            q = choose_neighbors(shards.n_images, choices.n_clusters)
    seed = job.settings.random_state
    options = FitOptions(choices.n_clusters, q, seed, plan.n_partitions)
    fit = fit_shards(engine, shards, coupling, sizes, options)
    return Fitted(fit, finish_labels(fit, coupling), micro)


def assemble(
    fitted: Fitted, choices: Choices, source: Source, scratch: Path, job: Job
) -> RunContents:
    """Gather what is written to the run directory, in parts if there is much."""
    given = fitted.fit, fitted.finished, choices, source, scratch, job
    if fitted.micro or source.shards.n_images > LARGEST_WHOLE:
        return assemble_large_run(*given, fitted.micro)
    return assemble_run(*given)


def sample_shards(
    engine: Engine, shards: Shards, sizes: Sizes, has_semantic: bool, stage: str
) -> None:
    """Take evenly spaced images from all shards."""
    plain = {"n_images": shards.n_images, "size": sizes.sample, "has_semantic": has_semantic}
    tasks = [
        Task(f"{number:05d}", sample_shard, {"shard": number, "start": start} | plain)
        for number, start in enumerate(shards.starts)
    ]
    engine.run(stage, tasks, "reading features")


def _known_run(
    directory: Path, sources: Sequence[str], digest: str, memory: int, options: ClusterOptions
) -> Run | None:
    """Return the finished run in a directory if neither files nor settings have changed."""
    try:
        open_run(directory)
    except InputError:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        listing = list_shards(Storage(scratch), sources, memory, options.storage_options)
    return earlier_run(directory, Plan(digest, [listing.digest], memory).content())


def read_source(
    engine: Engine, listing: Listing, job: Job, memory: int, options: ClusterOptions
) -> Source:
    """Encode the images, or copy ready features into the run; encode the words."""
    name = job.settings.model
    model: ChosenEncoder | None = None
    if listing.kind == "images" or name != "auto":
        model = load_encoder(name, progress=job.progress)
    if job.settings.looks:
        raise ParameterError("`looks` is not available on a cluster: leave it out.")
    used = None
    if model is not None:
        used = agree_on_model(engine, model.encoder.name if name == "auto" else name)
    found = encode_shards(
        engine, listing, used, memory, options=options.storage_options, cache=options.cache
    )
    counts = Shards([one["n_rows"] for one in found])
    check_enough(counts.n_images, job.settings.n_clusters)
    if counts.n_images < _FEWEST_IMAGES:
        raise ParameterError(
            f"{counts.n_images} images are too few for a cluster: leave `scheduler` out."
        )
    words = start_vocabulary(model, job)
    vocabulary: Vocabulary | None = words.finish(job) if words else None
    return Source(listing.kind, counts, model, vocabulary)


def choose(engine: Engine, source: Source, plan: Plan, job: Job) -> tuple[Choices, Sizes]:
    """Sample the images, and choose what the method needs to know before it sees all."""
    storage, shards = engine.storage, source.shards
    width = storage.read("features/00000.npy", 0, 1).shape[1]
    has_semantic = storage.size("semantic/00000.npy") is not None
    if has_semantic:
        width += storage.read("semantic/00000.npy", 0, 1).shape[1]
    n_prompts = len(job.settings.prompts) if source.vocabulary is not None else 1
    n_workers = len(engine.client.scheduler_info(n_workers=-1)["workers"])
    sizes = Sizes(shards.n_images, width, n_prompts, plan.worker_bytes, max(1, n_workers))
    sample_shards(engine, shards, sizes, has_semantic, "sample")
    found = engine.once(
        "choices",
        lambda: make_choices(
            storage, len(shards.counts), shards.n_images, source.model, source.vocabulary, job
        ),
    )
    return Choices(**found), sizes


def stage_counts(engine: Engine) -> dict[str, Any]:
    """Return how many tasks every stage had, and how many an earlier attempt had finished."""
    return {stage: asdict(count) for stage, count in engine.counts.items()}
