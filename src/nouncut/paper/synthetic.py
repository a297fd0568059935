"""Made features with the geometry of CLIP's: two narrow cones, one of images and one of nouns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from nouncut.compute.rows import unit_rows

# Squared length of the part that all images share, and all nouns: the typical cosine of a cone.
_IMAGES_SHARE = 0.6
_NOUNS_SHARE = 0.75
# The cosine between an image and an unrelated noun.
_MODALITY_COSINE = 0.22
# The weight of the topic in a noun's own part.
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
    """Make image and noun features with the geometry of CLIP's, and known classes.

    Cosines between images are about 0.6 across classes and up to 0.8 within one; cosines between
    images and nouns run from 0.15 to 0.35 and are highest for the nouns of an image's own class.
    Classes come in families that are harder to separate, and some images are poor examples of their
    class. A third of the nouns belong to no class. Every prompt shifts all nouns together and blurs
    each of them; later prompts blur more.

    Parameters
    ----------
    n_images : int, default=1000
        Number of images; classes are as equal in size as possible.
    n_clusters : int, default=10
        Number of classes.
    n_nouns : int, default=300
        Number of nouns.
    n_prompts : int, default=7
        Number of prompts.
    dim : int, default=512
        Number of features.
    separation : float, default=0.45
        Between 0 and 1; larger is easier. It is the largest share of an image's own part that its
        class explains; two thirds of it on average.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers; an int makes the same data every time.

    Returns
    -------
    ClipLikeData
        `features` of shape (n_images, dim) and `noun_features`, one array of shape
        (n_nouns, dim) per prompt, all with unit rows; `labels` of shape (n_images,).

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
    noun_features = _noun_features(nouns_cone, classes, n_nouns, n_prompts, rng)
    return ClipLikeData(features, noun_features, labels)


def _noun_features(
    cone: NDArray[np.float64],
    classes: NDArray[np.float64],
    n_nouns: int,
    n_prompts: int,
    rng: Any,
) -> list[NDArray[np.float32]]:
    """Return nouns, one array per prompt; two thirds of them have the topic of a class."""
    dim = len(cone)
    topics = _directions(n_nouns, dim, rng)
    of_a_class = np.flatnonzero(np.arange(n_nouns) % 3 != 2)
    topics[of_a_class] = classes[np.arange(len(of_a_class)) % len(classes)]
    meaning = _TOPICALITY * topics + np.sqrt(1 - _TOPICALITY**2) * _directions(n_nouns, dim, rng)
    return [
        unit_rows(
            np.sqrt(_NOUNS_SHARE) * cone
            + np.sqrt(1 - _NOUNS_SHARE) * meaning
            + 0.2 * _directions(1, dim, rng)
            + (0.1 + 0.3 * prompt / n_prompts) * _directions(n_nouns, dim, rng)
        ).astype(np.float32)
        for prompt in range(n_prompts)
    ]


def _directions(n: int, dim: int, rng: Any) -> NDArray[np.float64]:
    return unit_rows(rng.normal(size=(n, dim)))


def _cones(dim: int, rng: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the axes of the cones of images and of nouns."""
    axis, other = np.linalg.qr(rng.normal(size=(dim, 2)))[0].T
    cosine = _MODALITY_COSINE / np.sqrt(_IMAGES_SHARE * _NOUNS_SHARE)
    return axis, cosine * axis + np.sqrt(1 - cosine**2) * other


def _photographs(n: int, dim: int, rng: Any) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield the part in which photographs of one thing differ, most of it in a few directions.

    Blocks of images keep the memory low for a million of them.
    """
    spectrum = 1 / np.sqrt(1 + np.arange(dim))
    basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    for first in range(0, n, _IMAGES_AT_ONCE):
        rows = slice(first, min(first + _IMAGES_AT_ONCE, n))
        noise = rng.normal(size=(rows.stop - first, dim))
        yield rows, unit_rows((noise * spectrum) @ basis)
