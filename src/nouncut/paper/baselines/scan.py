"""SCAN's second and third step: linear heads that agree with neighbours and use all clusters.

Van Gansbeke et al., "SCAN: Learning to Classify Images without Labels", ECCV 2020. The first step,
which learns features, is left to the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nouncut.paper.baselines.nearest import nearest_images
from nouncut.paper.baselines.problem import Problem
from nouncut.paper.baselines.training import (
    BALANCE_WEIGHT,
    IMAGENET,
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
    from torch.nn import Module

# Heads are compared by these many neighbours of the test images.
_TEST_NEIGHBORS = 5
# A small data set is trained on as far as the 10,000 steps on CIFAR-10 go.
_SELF_LABEL_SCHEDULE = Schedule(200, 1000, 1e-4, min_steps=1000, small_rate=1e-3, weight_decay=1e-4)
_CONFIDENT = 0.99
_LEFT_OUT = 0.5


@dataclass(frozen=True)
class ScanSettings:
    """The settings that SCAN published for a data set."""

    schedule: Schedule
    n_neighbors: int = 20
    n_heads: int = 1


def scan_settings(family: str) -> ScanSettings:
    """Return the published settings of a data set, and those of STL-10 for others."""
    if family in IMAGENET:
        # Published with SGD at a rate of 5, for another model's features.
        return ScanSettings(linear_head_schedule(100, 1024, 0.0), n_neighbors=50, n_heads=10)
    n_epochs = 50 if family == "cifar-10" else 100
    batch_size = 512 if family == "cifar-20" else 128
    return ScanSettings(linear_head_schedule(n_epochs, batch_size, 1e-4))


def scan(
    problem: Problem,
    random_state: int,
    settings: ScanSettings | None = None,
    *,
    self_label: bool = False,
) -> TrainedLabels:
    """Train linear heads on ``-mean log <p, p_neighbour> - 5 H(mean p)``; apply the best of them.

    `self_label` adds the third step, which trains the head further on what it is sure of.
    """
    settings = settings or scan_settings(problem.family)
    images = clip_scaled(problem.unit_train_visual)
    nearest = neighbors_and_self(problem.unit_train_visual, settings.n_neighbors)
    with repeatable(random_state):
        import torch

        features, neighbors = torch.from_numpy(images), torch.from_numpy(nearest)
        heads = torch.nn.ModuleList(
            torch.nn.Linear(images.shape[1], problem.n_clusters) for _ in range(settings.n_heads)
        )

        def loss_of(batch: Tensor) -> Tensor:
            rows = features[torch.cat([batch, draw_neighbors(neighbors, batch)])]
            return torch.stack([scan_loss(*head(rows).chunk(2)) for head in heads]).sum()

        losses = train(heads.parameters(), loss_of, len(images), settings.schedule)
        head = _best_head(list(heads), problem.unit_visual)
        if self_label:
            losses += train_on_own_labels(head, features, problem.family)
        return TrainedLabels(head_labels(head, clip_scaled(problem.unit_visual)), losses)


def scan_loss(logits: Tensor, near_logits: Tensor) -> Tensor:
    """Return the loss of a batch."""
    p, near = logits.softmax(dim=1), near_logits.softmax(dim=1)
    return neighbor_consistency(p, near) - BALANCE_WEIGHT * balance(p)


def _best_head(heads: list[Module], images: NDArray[np.float32]) -> Module:
    """Return the head that agrees best with neighbours among the test images; no label is used."""
    import torch

    if len(heads) == 1:
        return heads[0]
    nearest = nearest_images(images, _TEST_NEIGHBORS).indices
    anchors = np.repeat(np.arange(len(images)), nearest.shape[1])
    with torch.no_grad():
        rows = torch.from_numpy(clip_scaled(images))
        all_p = [head(rows).softmax(dim=1) for head in heads]
        losses = [
            float(neighbor_consistency(p[anchors], p[nearest.ravel()]) - balance(p)) for p in all_p
        ]
    return heads[int(np.argmin(losses))]


def train_on_own_labels(head: Module, features: Tensor, family: str) -> list[float]:
    """Train a head on its own labels of images that it is sure of; return the loss of epochs.

    SCAN classifies a strongly changed copy of the image. Here half of the features are left out.
    """
    import torch
    from torch.nn.functional import dropout

    def loss_of(batch: Tensor) -> Tensor:
        with torch.no_grad():
            p = head(features[batch]).softmax(dim=1)
        logits = head(dropout(features[batch], _LEFT_OUT))
        return self_label_loss(p, logits, is_balanced=family not in IMAGENET)

    return train(head.parameters(), loss_of, len(features), _SELF_LABEL_SCHEDULE)


def self_label_loss(p: Tensor, logits: Tensor, *, is_balanced: bool) -> Tensor:
    """Return the cross-entropy with the labels of images whose probability exceeds 0.99.

    Balanced, every cluster counts the same, however many images are sure of it.
    """
    from torch.nn import functional

    confidence, labels = p.max(dim=1)
    sure = confidence > _CONFIDENT
    if not sure.any():
        return 0.0 * logits.sum()
    labels = labels[sure]
    counts = labels.bincount(minlength=p.shape[1]).to(logits.dtype)
    weight = len(labels) / counts.clamp_min(1) if is_balanced else None
    return functional.cross_entropy(logits[sure], labels, weight)
