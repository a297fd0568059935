"""An estimate of the time and memory of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from nouncut.method.footprint import fit_footprint
from nouncut.models.encoder import Encoder
from nouncut.runs.encode import ImageSet, missing_images, missing_texts
from nouncut.runs.job import Job
from nouncut.runs.vocabulary import PLAIN, vocabulary_words

_TRIAL_IMAGES = 8
# Texts of one length are encoded together, so few texts would look slower than many.
_TRIAL_TEXTS = 1024
# Fewer are encoded before anyone has read the estimate.
_WORTH_A_TRIAL = 64
# The model and its libraries; see benchmarks/memory.py.
_PROGRAM_BYTES = 800 * 2**20
# Used before the clusters are counted.
_LIKELY_CLUSTERS = 30
# Matrix products take about half of the time; softmax, selection and eigenvectors the rest.
_OVERHEAD = 2.0
_GEMM_SIZE = 1024


@dataclass(frozen=True)
class Estimate:
    """Rough time and memory of a run, and how much is still to encode."""

    n_images: int
    images_to_encode: int
    texts_to_encode: int
    encoding_seconds: float
    clustering_seconds: float
    n_bytes: int


def estimate_run(images: ImageSet, encoder: Encoder, job: Job) -> Estimate:
    """Estimate time and memory, after a short trial of the model and of the machine."""
    n_images, n_prompts = len(images.paths), len(job.settings.prompts)
    texts = missing_texts(vocabulary_words(job.settings), PLAIN, encoder, job.store)
    images_to_encode = len(missing_images(images, encoder, job.store))
    # TAC's filter keeps five nouns per centre, and has a centre for 300 images or more.
    n_nouns = max(150, n_images // 60)
    columns = encoder.image_dim + n_prompts * n_nouns
    footprint = fit_footprint(
        n_images,
        encoder.image_dim + encoder.text_dim,
        _LIKELY_CLUSTERS,
        n_nouns=n_nouns,
        n_prompts=n_prompts,
    )
    return Estimate(
        n_images=n_images,
        images_to_encode=images_to_encode,
        texts_to_encode=len(texts),
        encoding_seconds=images_to_encode * _seconds_per_image(encoder, images_to_encode)
        + len(texts) * _seconds_per_text(encoder, texts),
        clustering_seconds=_OVERHEAD * n_images**2 * columns / _flops(),
        n_bytes=_PROGRAM_BYTES + footprint.most,
    )


def _seconds_per_image(encoder: Encoder, n_images: int) -> float:
    from PIL import Image

    if n_images < _WORTH_A_TRIAL:
        return 0.0
    prepared = encoder.prepare(Image.new("RGB", (640, 480)))
    return _timed(encoder.encode_prepared, np.stack([prepared] * _TRIAL_IMAGES)) / _TRIAL_IMAGES


def _seconds_per_text(encoder: Encoder, texts: list[str]) -> float:
    if len(texts) < _WORTH_A_TRIAL:
        return 0.0
    trial = texts[:: max(1, len(texts) // _TRIAL_TEXTS)]
    return _timed(encoder.encode_texts, trial) / len(trial)


def _timed(function: Any, argument: Any) -> float:
    # The first call of a model is slower than the others.
    function(argument[:1])
    start = time.perf_counter()
    function(argument)
    return time.perf_counter() - start


def _flops() -> float:
    """Measure float operations per second."""
    matrix = np.ones((_GEMM_SIZE, _GEMM_SIZE), dtype=np.float32)
    return 2 * _GEMM_SIZE**3 / _timed(lambda m: m @ matrix, matrix)
