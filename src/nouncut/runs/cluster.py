"""The way from images to a run, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nouncut.runs.collection import (
    check_enough,
    count_images,
    list_images,
    load_model,
    open_sources,
    read_collection,
)
from nouncut.runs.contents import run_contents
from nouncut.runs.estimate import Estimate, estimate_run
from nouncut.runs.grouping import draw_map, group_images, prepare_comparison
from nouncut.runs.job import Job, recorded_warnings
from nouncut.runs.output import content_digest, earlier_run
from nouncut.runs.run import Run
from nouncut.runs.settings import Settings
from nouncut.runs.tables import path_texts
from nouncut.runs.vocabulary import encode_vocabulary
from nouncut.runs.writer import RunWriter


def make_run(
    sources: Sequence[str],
    directory: Path,
    job: Job,
    on_estimate: Callable[[Estimate], None] | None = None,
) -> Run:
    """Cluster images and write the run, unless the directory already holds it."""
    n_clusters = job.settings.n_clusters
    request = run_request(sources, job.settings)
    source = open_sources(sources)
    check_enough(count_images(source), n_clusters)
    with RunWriter(directory) as writer, recorded_warnings() as messages:
        with job.stage("encoding images"):
            model = load_model(source, job)
            images = list_images(source, job)
            # Not earlier: if no run can be made, the directory stays free for another.
            writer.start(request)
            if on_estimate is not None and model is not None:
                on_estimate(estimate_run(images, model.encoder, job))
            collection = read_collection(source, images, model, job)
        check_enough(len(collection), n_clusters)
        content = content_digest(collection, request["digest"])
        if run := earlier_run(directory, content, collection.n_encoded):
            return run
        vocabulary = encode_vocabulary(collection, job)
        compared = prepare_comparison(collection, vocabulary, job)
        groups = group_images(compared, vocabulary, job)
        points = draw_map(groups, job)
        contents = run_contents(compared, vocabulary, groups, points, job)
        about = {"content": content, "seconds": job.seconds, "warnings": messages()}
        contents.manifest.update(request | about)
        return writer.finish(contents)


def run_request(sources: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Return the fields of the manifest that describe what was asked for."""
    return {
        "digest": settings.digest(sources),
        "source": path_texts(sources),
        "settings": settings.to_json(),
    }
