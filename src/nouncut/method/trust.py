"""How far nouns can be believed about a collection, without labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from nouncut.compute.rows import unit_rows
from nouncut.method.graphs import provisional_count
from nouncut.method.kernel import Kernel
from nouncut.method.stability import (
    FEWEST_IMAGES,
    MAX_CLUSTERS,
    agreement,
    mean_probabilities,
    quick_labels,
    sample_images,
    self_agreement,
)


class NounTrust(NamedTuple):
    """The weight that nouns deserve, and the agreements (adjusted Rand indices) behind it."""

    weight: float
    # Of clusters by meaning with clusters by looks.
    agreement: float
    # Of clusters with themselves, from different images: by looks, and by meaning.
    looks_stability: float
    meaning_stability: float | None  # None where meaning is inferred from looks.


# For collections that are too small to judge.
FULL_TRUST = NounTrust(1.0, 1.0, 1.0, 1.0)


def weigh_nouns(
    kernel: Kernel,
    weight: float | str,
    n_clusters: int | str,
    rng: np.random.RandomState,
    n_threads: int = 1,
) -> tuple[float, NounTrust | None]:
    """Return the weight of a kernel's nouns, and the trust behind it if that is "auto"."""
    if not kernel.prompts:
        return 0.0, None
    if not isinstance(weight, str):
        return float(weight), None
    k = provisional_count(len(kernel.features)) if isinstance(n_clusters, str) else n_clusters
    trust = noun_trust(kernel, k, random_state=rng, n_threads=n_threads)
    return trust.weight, None if trust is FULL_TRUST else trust


def noun_trust(
    kernel: Kernel,
    n_clusters: int,
    *,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
) -> NounTrust:
    """Judge nouns by how well clusters by meaning agree with clusters by looks.

    Clusters by looks are not perfect either: those of two draws of the images agree only so far.
    The ratio r of the two agreements is the reliability of the nouns relative to looks. Like a
    voter who is right with probability r, nouns get the weight ``2 r - 1``: nothing if they agree
    half as well as looks do with themselves, and everything if they agree as well.

    Where images and nouns share a space, meaning may know more than looks. There looks judge only
    as far as their clusters are as stable as those by meaning.

    Parameters
    ----------
    kernel : Kernel
        The images with their nouns.
    n_clusters : int
        The number of clusters to compare.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws and of the eigensolver.
    n_threads : int, default=1
        Threads.

    Returns
    -------
    NounTrust
        The weight, from 0 to 1, and the agreements.

    Examples
    --------
    >>> from nouncut.method.kernel import Kernel
    >>> from nouncut.method.trust import noun_trust
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> data = make_clip_like(n_images=300, n_clusters=5, random_state=0)
    >>> kernel = Kernel(data.features, data.features, data.noun_features, 0.04)
    >>> noun_trust(kernel, 5, random_state=0).weight
    1.0
    """
    n_images = len(kernel.features)
    if n_images < FEWEST_IMAGES or n_clusters < 2:
        return FULL_TRUST
    sample = kernel.take(sample_images(n_images))
    rng = check_random_state(random_state)
    k = min(n_clusters, MAX_CLUSTERS, len(sample.features) // 4)
    looks, meanings = sample.features, _meanings(sample, n_threads)
    labels = [quick_labels(rows, [], k, rng, n_threads) for rows in (looks, meanings)]
    common = agreement(*labels)
    stability = self_agreement(looks, k, rng, n_threads)
    weight = float(np.clip(2 * common / stability - 1, 0, 1))
    if kernel.semantic is not kernel.features:
        return NounTrust(weight, common, stability, None)
    of_meaning = self_agreement(meanings, k, rng, n_threads)
    authority = min(1.0, stability / of_meaning)
    return NounTrust(1 - authority * (1 - weight), common, stability, of_meaning)


def _meanings(kernel: Kernel, n_threads: int) -> NDArray[Any]:
    """Return roots of noun probabilities, relative to their mean over images."""
    roots = np.sqrt(mean_probabilities(kernel, n_threads)[0])
    return np.asarray(unit_rows(roots - roots.mean(axis=0)))
