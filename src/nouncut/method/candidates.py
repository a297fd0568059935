"""Pairs of images that may be neighbours under any prompt, found with a cheaper kernel.

Softmax probabilities over thousands of nouns are nearly of low rank: projected on a few hundred
directions their inner products hardly change. One prompt, the mean of all, is enough to find a
short list of candidates for every image; the exact kernels of all prompts are then needed on the
candidates only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array

from nouncut.compute.threads import blas_threads
from nouncut.method.kernel import softmax_blocks
from nouncut.method.neighbors import Neighbors

RANK = 256
SAMPLE_SIZE = 1024


def noun_factors(
    features: NDArray[Any],
    nouns: NDArray[Any],
    tau: float,
    *,
    rank: int = RANK,
    n_threads: int = 1,
) -> NDArray[np.float32]:
    """Return short rows whose inner products are nearly those of the noun probabilities.

    The probabilities are projected on their leading right singular vectors, estimated from 1,024
    evenly spaced images; they are never held all at once.
    """
    n_images = len(features)
    picked = np.linspace(0, n_images - 1, min(n_images, SAMPLE_SIZE)).astype(np.intp)
    sample = np.empty((len(picked), len(nouns)), np.float32)

    def keep(rows: slice, block: NDArray[Any]) -> None:
        sample[rows] = block

    softmax_blocks(features[picked], nouns, tau, keep, n_threads)
    with blas_threads(1):
        if len(picked) <= len(nouns):
            squares, left = eigh(sample.astype(np.float64) @ sample.T, driver="evd")
            large = squares > 1e-9 * squares[-1]
            directions = sample.T @ (left[:, large] / np.sqrt(squares[large])).astype(np.float32)
        else:
            directions = eigh(sample.T @ sample, driver="evd")[1]
    directions = np.ascontiguousarray(directions[:, ::-1][:, :rank])
    factors = np.empty((n_images, directions.shape[1]), np.float32)

    def project(rows: slice, block: NDArray[Any]) -> None:
        factors[rows] = block @ directions

    softmax_blocks(features, nouns, tau, project, n_threads)
    return factors


def candidate_pairs(found: Neighbors) -> csr_array:
    """Return every pair of images of which one has chosen the other, once."""
    n, q = found.indices.shape
    present = found.indices.ravel() >= 0
    chooser = np.repeat(np.arange(n, dtype=np.int32), q)[present]
    chosen = found.indices.ravel()[present]
    ends = np.minimum(chooser, chosen), np.maximum(chooser, chosen)
    pairs = csr_array((np.ones(len(chosen), np.int8), ends), shape=(n, n))
    pairs.data[:] = 1
    pairs.sort_indices()
    return pairs
