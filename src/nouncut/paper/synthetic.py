"""Made features with the geometry of CLIP's: two narrow cones, one of images and one of nouns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from nouncut.compute.rows import unit_rows

# Squared length of what all images share, and all nouns; cosines within a cone are about this.
_IMAGES_SHARE = 0.6
_NOUNS_SHARE = 0.75
# The cosine between an image and a noun that have nothing in common.
_MODALITY_COSINE = 0.22
# How much of a noun's own part is its topic.
_TOPICALITY = 0.4
_IMAGES_AT_ONCE = 20_000


class ClipLikeData(NamedTuple):
    """Made image and noun features with known classes."""

    features: NDArray[np.float32]
    noun_features: list[NDArray[np.float32]]
    labels: NDArray[np.intp]


def make_clip_like(
    n_images: int = 1000,
    n_clusters: int = 10,
    *,
    n_nouns: int = 300,
    n_prompts: int = 7,
    dim: int = 512,
    separation: float = 0.45,
    random_state: int | np.random.RandomState | None = None,
) -> ClipLikeData:
    """Make features whose cosines lie where CLIP's do.

    Images share a direction, so that their cosines are about 0.6 across classes and up to 0.8
    within one; nouns share another, so that image-noun cosines run from 0.15 to 0.35, highest
    for the nouns of an image's own class. Classes come in families that are harder to tell
    apart, and some images are poor examples of theirs. A third of the nouns belong to no class.
    Every prompt shifts all nouns together and blurs each by itself; later prompts blur more.

    Parameters
    ----------
    n_images : int, default=1000
        Images, spread over the classes as evenly as possible.
    n_clusters : int, default=10
        Classes.
    n_nouns : int, default=300
        Nouns.
    n_prompts : int, default=7
        Prompts.
    dim : int, default=512
        Dimensions.
    separation : float, default=0.45
        The most of an image's own part that can be its class, between 0 and 1; an image has two
        thirds of it on average.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    ClipLikeData
        Features, noun features and labels.

    Examples
    --------
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> data = make_clip_like(100, 4, random_state=0)
    >>> data.features.shape, len(data.noun_features), data.noun_features[0].shape
    ((100, 512), 7, (300, 512))
    """
    rng = check_random_state(random_state)
    images_cone, nouns_cone = _cones(dim, rng)
    families = _directions(max(1, n_clusters // 3), dim, rng)
    classes = unit_rows(
        _directions(n_clusters, dim, rng) + 0.6 * families[np.arange(n_clusters) % len(families)]
    )
    labels = rng.permutation(np.arange(n_images) % n_clusters)

    share = separation * rng.beta(4, 2, size=(n_images, 1))
    features = np.empty((n_images, dim), dtype=np.float32)
    for rows, photographs in _photographs(n_images, dim, rng):
        part = share[rows]
        own = np.sqrt(part) * classes[labels[rows]] + np.sqrt(1 - part) * photographs
        features[rows] = unit_rows(
            np.sqrt(_IMAGES_SHARE) * images_cone + np.sqrt(1 - _IMAGES_SHARE) * unit_rows(own)
        )

    topics = _directions(n_nouns, dim, rng)
    of_a_class = np.flatnonzero(np.arange(n_nouns) % 3 != 2)
    topics[of_a_class] = classes[np.arange(len(of_a_class)) % n_clusters]
    meaning = _TOPICALITY * topics + np.sqrt(1 - _TOPICALITY**2) * _directions(n_nouns, dim, rng)
    noun_features = [
        unit_rows(
            np.sqrt(_NOUNS_SHARE) * nouns_cone
            + np.sqrt(1 - _NOUNS_SHARE) * meaning
            + 0.2 * _directions(1, dim, rng)
            + (0.1 + 0.3 * prompt / n_prompts) * _directions(n_nouns, dim, rng)
        ).astype(np.float32)
        for prompt in range(n_prompts)
    ]
    return ClipLikeData(features, noun_features, labels)


def _directions(n: int, dim: int, rng: Any) -> NDArray[np.float64]:
    return unit_rows(rng.normal(size=(n, dim)))


def _cones(dim: int, rng: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the axes of the images' and the nouns' cones, the right angle apart."""
    axis, other = np.linalg.qr(rng.normal(size=(dim, 2)))[0].T
    cosine = _MODALITY_COSINE / np.sqrt(_IMAGES_SHARE * _NOUNS_SHARE)
    return axis, cosine * axis + np.sqrt(1 - cosine**2) * other


def _photographs(n: int, dim: int, rng: Any) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield what differs between photographs of one thing: a few directions carry most of it.

    A part of the images at a time, so that a million of them fit into memory.
    """
    spectrum = 1 / np.sqrt(1 + np.arange(dim))
    basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    for first in range(0, n, _IMAGES_AT_ONCE):
        rows = slice(first, min(first + _IMAGES_AT_ONCE, n))
        noise = rng.normal(size=(rows.stop - first, dim))
        yield rows, unit_rows((noise * spectrum) @ basis)
