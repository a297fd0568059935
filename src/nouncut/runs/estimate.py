"""An estimate of the time and the peak memory of a run, announced before its long part.

Encoding is tried on some of the images and texts, whose features are kept. Memory starts from what
the process uses after that trial, when models and libraries are loaded, and adds the arrays to
come. ``benchmarks/estimate.py`` compares estimates with real runs, and prints the values that its
machine would give the constants here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from nouncut.compute.memory import free_memory, free_swap, peak_memory, used_memory
from nouncut.compute.threads import blas_threads, count_threads, run_tasks
from nouncut.errors import ImageError, LowMemoryError
from nouncut.images.open import open_image
from nouncut.method.candidates import RANK
from nouncut.method.count import MAX_CLUSTERS
from nouncut.method.footprint import fit_footprint
from nouncut.method.search import can_compare_all
from nouncut.models.choose import ChosenEncoder
from nouncut.runs.encode import ImageEncoding, Trial, visual_dim
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.looks import SeveralEncodings
from nouncut.runs.naming import names_by_classes
from nouncut.runs.sources import FeatureFile, Source
from nouncut.runs.vocabulary import VocabularyEncoding
from nouncut.words.evidence import IMAGES_PER_CLUSTER, MAX_THREADS

# Work is counted in multiplications of a large matrix product that would take the same time, so
# that it suits any machine: the speed of such a product is measured.
WORK = {
    # Libraries, WordNet, and the templates of the report.
    "run": 135e9,
    # Choosing nouns and names.
    "word": 1e6,
    # The map, tables, and the report without thumbnails.
    "image": 35e6,
    # Eigenvectors of the graph, and the cuts that are compared to find the number of clusters.
    "image and eigenvector": 0.34e6,
    # Neighbours are chosen while the products that find them are computed.
    "multiplication": 0.4,
}
# Buffers that SciPy, BLAS and threads allocate when they are first used.
BYTES_ONCE = 120 * 2**20

# Estimates of memory are rough: only a larger excess than this prevents a run.
_CERTAIN_EXCESS = 1.5
# Address space that threads and libraries reserve but do not use.
_UNUSED_SPACE = 100 * 2**20
_LIMITS = {
    "machine": "only {} are free on this machine. Close other programs",
    "container": "its container (control group) leaves only {}. Raise the container's limit",
    "process": "its limit on address space leaves only {}. Raise it (ulimit -v unlimited)",
}
_TRIAL_SECONDS = 1.0
_THUMBNAIL_SECONDS = 0.3
_THUMBNAIL_SIDE = 320
# Before clusters are counted.
_LIKELY_CLUSTERS = 30
# What names cost per cluster and word.
_BYTES_PER_NAME = 32
_SINGLE = 4
_GEMM_SIZE, _SPEED_SECONDS = 512, 0.1


@dataclass(frozen=True)
class Estimate:
    """Rough time and memory of a run, and how much there is to encode.

    Parameters
    ----------
    source_kind : {"images", "features"}
        Whether features are computed from images or come from a file.
    n_files, n_words : int
        Image files, or rows of features, and words of the vocabulary.
    n_copies : int
        Files with the same content as others.
    n_images : int
        Images that will probably be clustered; the other files cannot be opened.
    images_to_encode, texts_to_encode : int
        Images and words whose features were not stored before.
    encoding_seconds, clustering_seconds : float
        Time that encoding and everything after it will still take.
    n_bytes : int
        The most memory that the process will use.
    announced : str
        When the estimate was made.
    amounts : dict
        How often the work of every kind is done after encoding.
    multiplications_per_second : float
        The measured speed of the machine.
    """

    source_kind: Literal["images", "features"]
    n_files: int
    n_words: int
    n_copies: int
    n_images: int
    images_to_encode: int
    texts_to_encode: int
    encoding_seconds: float
    clustering_seconds: float
    n_bytes: int
    announced: str
    amounts: dict[str, float]
    multiplications_per_second: float

    @property
    def seconds(self) -> float:
        """Time that the run will still take."""
        return self.encoding_seconds + self.clustering_seconds

    def to_json(self) -> dict[str, Any]:
        """Return the estimate for the manifest."""
        return asdict(self) | {"seconds": self.seconds}


class _Size(NamedTuple):
    """What decides the cost of a clustering."""

    n_images: int
    visual_dim: int
    text_dim: int
    n_words: int
    n_naming_words: int  # That names are chosen from; none if the model knows its classes.
    n_nouns: int
    n_prompts: int
    n_clusters: int
    n_vectors: int

    @property
    def columns(self) -> int:
        return self.visual_dim + self.n_nouns * self.n_prompts


def estimate_run(
    source: Source,
    images: ImageSet,
    model: ChosenEncoder | None,
    encoding: ImageEncoding | SeveralEncodings | None,
    words: VocabularyEncoding | None,
    job: Job,
) -> Estimate:
    """Estimate the time and memory of a run; some images and texts are encoded to do so."""
    n_files, n_texts = encoding.n_left if encoding else 0, words.texts.n_left if words else 0
    image_trial, pace_of_texts = _try(encoding, words, job)
    n_broken = round(n_files * (1 - image_trial.share_opened))
    size = _size(len(images.paths) - n_broken, source, model, encoding, words, job)
    n_threads = count_threads(job.n_jobs)
    amounts, speed = _amounts(size), _multiplications_per_second(n_threads)
    work = sum(WORK[kind] * amount for kind, amount in amounts.items())
    n_new = n_files - n_broken
    phrases = size.n_nouns * size.n_prompts if n_texts else 0
    return Estimate(
        source_kind="features" if isinstance(source, FeatureFile) else "images",
        n_files=len(images.paths),
        n_words=size.n_words,
        n_copies=len(images.hashes or ()) - len(set(images.hashes or ())),
        n_images=size.n_images,
        images_to_encode=n_files,
        texts_to_encode=n_texts,
        encoding_seconds=(encoding.n_left if encoding else 0) * image_trial.seconds_per_file
        + ((words.texts.n_left if words else 0) + phrases) * pace_of_texts,
        clustering_seconds=work / speed + n_new * _seconds_per_thumbnail(images, n_new) / n_threads,
        n_bytes=_peak(size, source, encoding, image_trial, n_threads),
        announced=datetime.now(UTC).isoformat(timespec="milliseconds"),
        amounts=amounts,
        multiplications_per_second=speed,
    )


def check_memory(estimate: Estimate) -> None:
    """Raise if a run needs so much more memory than is free that it would be killed."""
    free, more = free_memory(), estimate.n_bytes - (used_memory() or 0)
    if free is None:
        return
    room = free.n_bytes + (free_swap() if free.limit == "machine" else 0)
    if free.limit == "process":
        # Libraries that get no address space end the process without an error.
        is_too_much = more + _UNUSED_SPACE > room
    else:
        is_too_much = more > _CERTAIN_EXCESS * room
    if is_too_much:
        raise LowMemoryError(
            f"This run needs about {more / 1e9:.1f} GB more memory, but {_LIMITS[free.limit]}, or "
            "take fewer images or another `model`.".format(f"{room / 1e9:.1f} GB")
        )


def _try(
    encoding: ImageEncoding | SeveralEncodings | None, words: VocabularyEncoding | None, job: Job
) -> tuple[Trial, float]:
    """Encode some images and texts, and return how long one of each takes."""
    trial, pace = Trial(1.0, 0.0, 0), 0.0
    if encoding is not None and encoding.n_left:
        with job.timed("encoding images"):
            trial = encoding.try_some(_TRIAL_SECONDS)
    if words is not None and words.texts.n_left:
        with job.timed("encoding nouns"):
            pace = words.texts.try_some(_TRIAL_SECONDS)
    return trial, pace


def _size(
    n_images: int,
    source: Source,
    model: ChosenEncoder | None,
    encoding: ImageEncoding | SeveralEncodings | None,
    words: VocabularyEncoding | None,
    job: Job,
) -> _Size:
    asked = job.settings.n_clusters
    n_clusters = _LIKELY_CLUSTERS if asked == "auto" else asked
    n_vectors = min(MAX_CLUSTERS, n_images // 5) if asked == "auto" else n_clusters
    if model is None:
        width = source.features.shape[1] if isinstance(source, FeatureFile) else 0
        return _Size(n_images, width, 0, 0, 0, 0, 0, n_clusters, n_vectors)
    n_words = len(words.words) if words else 0
    # TAC's filter keeps five nouns per centre; there are three centres per cluster, or one per 300
    # images.
    n_nouns = min(n_words, 5 * max(3 * n_clusters, n_images // 300))
    return _Size(
        n_images,
        encoding.visual_dim if encoding else visual_dim(model.encoder),
        model.encoder.text_dim,
        n_words,
        0 if names_by_classes(model.encoder, job.settings) else n_words,
        n_nouns,
        len(job.settings.prompts),
        n_clusters,
        n_vectors,
    )


def _amounts(size: _Size) -> dict[str, float]:
    """Return how often the work of every kind is done after encoding."""
    n = float(size.n_images)
    if can_compare_all(size.n_images, size.columns):
        searched = size.columns
    else:
        searched = size.visual_dim + (RANK if size.n_nouns else 0)
    return {
        "run": 1.0,
        "word": float(size.n_words),
        "image": n,
        "image and eigenvector": n * size.n_vectors,
        "multiplication": n**2 * searched + n * size.n_nouns * size.n_prompts * size.text_dim,
    }


def _peak(
    size: _Size,
    source: Source,
    encoding: ImageEncoding | SeveralEncodings | None,
    trial: Trial,
    n_threads: int,
) -> int:
    """Return the most memory that the process will use."""
    now = used_memory() or 0
    if encoding is not None and encoding.n_left:
        # A batch, and the images that are opened for the next one.
        encode = 2 * min(encoding.images_at_once, encoding.n_left) * trial.n_bytes
    else:
        encode = 0
    features = size.n_images * (size.visual_dim + size.text_dim) * _SINGLE
    vocabulary = size.n_words * size.text_dim * _SINGLE
    needed = fit_footprint(
        size.n_images,
        size.visual_dim + size.text_dim,
        size.n_vectors,
        n_nouns=size.n_nouns,
        n_prompts=max(1, size.n_prompts),
    )
    # The footprint counts the features; those of a file are in memory already.
    fit = needed.most - (features if isinstance(source, FeatureFile) else 0)
    # Copies of the vocabulary: the mean over prompts, distinct words, and these transposed.
    at_once = IMAGES_PER_CLUSTER * min(MAX_THREADS, n_threads)
    per_word = (3 * size.text_dim + at_once) * _SINGLE + size.n_clusters * _BYTES_PER_NAME
    names = 2 * features + size.n_naming_words * per_word
    later = BYTES_ONCE + vocabulary + max(fit, names)
    return max(peak_memory() or 0, now + encode, now + later)


def _seconds_per_thumbnail(images: ImageSet, n_new: int) -> float:
    """Measure how long the report takes for an image that has no thumbnail yet."""
    if not n_new or images.hashes is None:
        return 0.0
    start, made = time.perf_counter(), 0
    for path in _spread(images.paths):
        try:
            picture = open_image(path, min_side=_THUMBNAIL_SIDE)
        except ImageError:
            continue
        picture.thumbnail((_THUMBNAIL_SIDE, _THUMBNAIL_SIDE))
        picture.save(BytesIO(), "WEBP", method=2)
        made += 1
        if time.perf_counter() - start > _THUMBNAIL_SECONDS:
            break
    return (time.perf_counter() - start) / max(1, made)


def _spread(paths: Sequence[str | Path]) -> list[str | Path]:
    return list(paths[:: max(1, len(paths) // 16)])


def _multiplications_per_second(n_threads: int) -> float:
    """Measure the speed of matrix products, one per thread as in the search of neighbours."""
    matrix = np.ones((_GEMM_SIZE, _GEMM_SIZE), dtype=np.float32)

    def multiply(_: int) -> float:
        start, n_products = time.perf_counter(), 0
        # Other programs may interrupt single products.
        while time.perf_counter() - start < _SPEED_SECONDS:
            matrix @ matrix
            n_products += 1
        return n_products * _GEMM_SIZE**3 / (time.perf_counter() - start)

    with blas_threads(1):
        return sum(run_tasks(multiply, range(n_threads), n_threads))
