"""SIC: a linear head taught by neighbours and by pseudo-labels from nouns.

Cai et al., "Semantic-Enhanced Image Clustering", AAAI 2023. The official code stops at the best
accuracy on the test labels; here the number of epochs is fixed beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines.kmeans import spherical_kmeans
from nouncut.paper.baselines.nearest import nearest_centers
from nouncut.paper.baselines.problem import Problem, unit_features
from nouncut.paper.baselines.training import (
    BALANCE_WEIGHT,
    Schedule,
    TrainedLabels,
    balance,
    clip_scaled,
    draw_neighbors,
    head_labels,
    linear_head_schedule,
    neighbor_consistency,
    neighbors_and_self,
    repeatable,
    train,
)

if TYPE_CHECKING:
    from torch import Tensor

_NEIGHBORS = 20
_NOUNS_PER_CENTER = 500
# Nouns closer than this to the mean noun are too common to tell clusters apart.
_MAX_COMMON_COSINE = 0.95
_CONFIDENT_SHARE = 0.9
_NOUNS_PER_CLUSTER = 30


@dataclass(frozen=True)
class SicSettings:
    """The settings that SIC published for a data set."""

    schedule: Schedule
    # Weight of the cross-entropy with pseudo-labels.
    teaching: float = 1.0


def sic_settings(family: str) -> SicSettings:
    """Return the published settings of a data set, and those of most for others."""
    decay = 0.009 if family == "imagenet-dogs" else 1e-4
    schedule = linear_head_schedule(100, 128, decay)
    return SicSettings(schedule, teaching=0.1 if family == "cifar-10" else 1.0)


def sic(problem: Problem, random_state: int, settings: SicSettings | None = None) -> TrainedLabels:
    """Train a linear head on ``-mean log <p, p_neighbour> - 5 H(mean p) + cross-entropy``.

    The cross-entropy is with pseudo-labels, which are renewed at the start of every epoch.
    """
    settings = settings or sic_settings(problem.family)
    images, semantic = problem.unit_train_visual, problem.unit_train_semantic
    candidates = unit_features(problem.candidates)
    centers = spherical_kmeans(semantic, problem.n_clusters, random_state).centers
    nouns = candidates[nearby_nouns(centers, candidates)]
    with repeatable(random_state):
        import torch

        features = torch.from_numpy(clip_scaled(images))
        neighbors = torch.from_numpy(neighbors_and_self(images, _NEIGHBORS))
        head = torch.nn.Linear(images.shape[1], problem.n_clusters)
        targets = torch.empty(len(images), dtype=torch.int64)

        def renew_targets() -> None:
            with torch.no_grad():
                confidence = head(features).numpy()
            targets.copy_(torch.from_numpy(pseudo_labels(confidence, semantic, nouns)))

        def loss_of(batch: Tensor) -> Tensor:
            rows = torch.cat([batch, draw_neighbors(neighbors, batch)])
            logits, near_logits = head(features[rows]).chunk(2)
            return sic_loss(logits, near_logits, targets[batch], settings.teaching)

        losses = train(head.parameters(), loss_of, len(images), settings.schedule, renew_targets)
        return TrainedLabels(head_labels(head, clip_scaled(problem.unit_visual)), losses)


def sic_loss(logits: Tensor, near_logits: Tensor, targets: Tensor, teaching: float) -> Tensor:
    """Return the loss of a batch; `teaching` weighs the pseudo-labels."""
    from torch.nn import functional

    p, near = logits.softmax(dim=1), near_logits.softmax(dim=1)
    taught = functional.cross_entropy(logits, targets)
    return neighbor_consistency(p, near) - BALANCE_WEIGHT * balance(p) + teaching * taught


def nearby_nouns(centers: NDArray[np.float32], nouns: NDArray[np.float32]) -> NDArray[np.intp]:
    """Choose the nouns near any centre that are not too common."""
    kept = np.unique(_largest(centers @ nouns.T, _NOUNS_PER_CENTER))
    mean = unit_rows(nouns.mean(axis=0, keepdims=True))[0]
    telling = kept[nouns[kept] @ mean < _MAX_COMMON_COSINE]
    return telling if len(telling) >= _NOUNS_PER_CLUSTER else kept


def pseudo_labels(
    confidence: NDArray[np.float32], semantic: NDArray[np.float32], nouns: NDArray[np.float32]
) -> NDArray[np.intp]:
    """Return the cluster with the nearest text centre for every image.

    The text centre of a cluster is the mean of the 30 nouns nearest to its image centre, which is
    the mean of the images that the head is surest of.
    """
    n_images, n_clusters = confidence.shape
    n_sure = max(1, int(_CONFIDENT_SHARE * (n_images // n_clusters)))
    surest = _largest(confidence.T, n_sure).T
    image_centers = unit_rows(semantic[surest].mean(axis=0))
    nearest = _largest(image_centers @ nouns.T, _NOUNS_PER_CLUSTER)
    text_centers = unit_rows(nouns[nearest].mean(axis=1))
    return nearest_centers(semantic, text_centers).labels


def _largest(rows: NDArray[np.float32], n: int) -> NDArray[np.intp]:
    """Return the indices of the n largest entries of every row, in any order."""
    if n >= rows.shape[1]:
        return np.tile(np.arange(rows.shape[1]), (len(rows), 1))
    return np.argpartition(-rows, n, axis=1)[:, :n]
