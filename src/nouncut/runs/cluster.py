"""The way from images to a run, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nouncut.runs.job import Job, recorded_warnings
from nouncut.runs.looks import choose_looks, fingerprints, start_encoding
from nouncut.runs.output import content_digest, earlier_run
from nouncut.runs.run import Run
from nouncut.runs.settings import Settings
from nouncut.runs.sources import (
    check_enough,
    choose_model,
    count_images,
    list_images,
    open_sources,
)
from nouncut.runs.tables import path_texts
from nouncut.runs.writer import RunWriter

if TYPE_CHECKING:
    from nouncut.runs.estimate import Estimate


def make_run(
    sources: Sequence[str],
    directory: Path,
    job: Job,
    on_estimate: Callable[[Estimate], None] | None = None,
) -> Run:
    """Cluster images and write the run, unless the directory already holds it."""
    n_clusters = job.settings.n_clusters
    request = run_request(sources, job.settings)
    with job.stage("finding files"):
        source = open_sources(sources)
    check_enough(count_images(source), n_clusters)
    with RunWriter(directory) as writer, recorded_warnings() as messages:
        model, looks = choose_model(source, job), choose_looks(source, job)
        images = list_images(source, job)
        encoding = start_encoding(images, model, looks, job)
        versions = fingerprints(model, looks)
        content = content_digest(source, images, versions, request["digest"])
        if not (encoding and encoding.n_left) and (run := earlier_run(directory, content)):
            return run
        # SciPy and scikit-learn take a second to import, and only a new run needs them.
        from nouncut.runs.collection import collect_features
        from nouncut.runs.contents import run_contents
        from nouncut.runs.estimate import check_memory, estimate_run
        from nouncut.runs.grouping import draw_map, group_as_before, prepare_comparison
        from nouncut.runs.vocabulary import start_vocabulary

        # Not earlier: if no run can be made, the directory stays free for another.
        writer.start(request)
        words = start_vocabulary(model, job)
        estimate = estimate_run(source, images, model, encoding, words, job)
        if on_estimate is not None:
            on_estimate(estimate)
        check_memory(estimate)
        if encoding is not None:
            with job.timed("encoding images"):
                images = encoding.finish()
            check_enough(len(images.paths), n_clusters)
            content = content_digest(source, images, versions, request["digest"])
            if run := earlier_run(directory, content, encoding.n_encoded):
                return run
        collection = collect_features(source, images, model)
        vocabulary = words.finish(job) if words else None
        collection = prepare_comparison(collection, vocabulary, job)
        groups, names = group_as_before(directory, collection, vocabulary, job)
        points = draw_map(groups, job)
        contents = run_contents(collection, vocabulary, groups, points, job)
        about = {"content": content, "seconds": job.seconds, "warnings": messages()}
        contents.manifest.update(request | about | {"estimate": estimate.to_json()})
        contents.manifest.update(names.manifest())
        return writer.finish(replace(contents, edits=names.edits))


def run_request(sources: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Return the fields of the manifest that describe what was asked for."""
    return {
        "digest": settings.digest(sources),
        "source": path_texts(sources),
        "settings": settings.to_json(),
    }
