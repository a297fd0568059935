"""TAC with training: an image head and a text head that teach each other.

Li et al., "Image Clustering with External Guidance", ICML 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nouncut.paper.baselines.nearest import nearest_images
from nouncut.paper.baselines.problem import Problem
from nouncut.paper.baselines.tac import text_counterparts
from nouncut.paper.baselines.training import (
    BALANCE_WEIGHT,
    IMAGENET,
    Schedule,
    TrainedLabels,
    balance,
    cluster_contrast,
    draw_neighbors,
    head_labels,
    neighbor_consistency,
    repeatable,
    train,
)
from nouncut.words.filters import mean_prompt_features

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_NEIGHBORS = 50
_BETAS = (0.9, 0.99)
_INITIAL_DEVIATION = 0.02
_MANY_CLUSTERS = IMAGENET | {"ucf-101"}


@dataclass(frozen=True)
class TacSettings:
    """The settings that TAC published for a data set."""

    schedule: Schedule
    temperature: float


def tac_settings(family: str) -> TacSettings:
    """Return the published settings: one for UCF-101 and ImageNet, one for all others."""
    if family in _MANY_CLUSTERS:
        return TacSettings(Schedule(100, 8192, 1e-3, _BETAS, min_steps=200), temperature=5.0)
    return TacSettings(Schedule(20, 512, 1e-3, _BETAS, min_steps=200), temperature=0.5)


def tac_heads(
    problem: Problem, random_state: int, settings: TacSettings | None = None
) -> TrainedLabels:
    """Train an image head and a text head to agree across neighbours; apply the image head."""
    settings = settings or tac_settings(problem.family)
    texts = text_counterparts(problem.unit_train_semantic, mean_prompt_features(problem.nouns))
    with repeatable(random_state):
        image_side = _Side(problem.unit_train_visual, problem.n_clusters)
        text_side = _Side(texts, problem.n_clusters)

        def loss_of(batch: Tensor) -> Tensor:
            p, p_near = image_side.probabilities(batch)
            q, q_near = text_side.probabilities(batch)
            return heads_loss(p, q, p_near, q_near, settings.temperature)

        parameters = [*image_side.head.parameters(), *text_side.head.parameters()]
        losses = train(parameters, loss_of, len(texts), settings.schedule)
        return TrainedLabels(head_labels(image_side.head, problem.unit_visual), losses)


def heads_loss(p: Tensor, q: Tensor, p_near: Tensor, q_near: Tensor, temperature: float) -> Tensor:
    """Return the loss of a batch.

    p are the image head's probabilities, q the text head's; with D the contrast of clusters it is
    ``D(p, q_near) + D(q, p_near) - mean log <q, p> - 5 (H(mean q) + H(mean p))``.
    """
    contrast = cluster_contrast(p, q_near, temperature) + cluster_contrast(q, p_near, temperature)
    spread = balance(q) + balance(p)
    return contrast + neighbor_consistency(q, p) - BALANCE_WEIGHT * spread


class _Side:
    """One modality: its features, their neighbours and its head."""

    def __init__(self, features: NDArray[np.float32], n_clusters: int) -> None:
        import torch

        self.features = torch.from_numpy(features)
        self.neighbors = torch.from_numpy(nearest_images(features, _NEIGHBORS).indices)
        self.head = _make_head(features.shape[1], n_clusters)

    def probabilities(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities of images and of a neighbour of each."""
        # Two passes, because the head normalises every pass by its own mean and deviation.
        own = self.head(self.features[batch])
        near = self.head(self.features[draw_neighbors(self.neighbors, batch)])
        return own.softmax(dim=1), near.softmax(dim=1)


def _make_head(dim: int, n_clusters: int) -> Module:
    from torch import nn

    first, last = nn.Linear(dim, dim), nn.Linear(dim, n_clusters)
    for layer in (first, last):
        # Cut at -2 and 2, which are 100 deviations away.
        nn.init.trunc_normal_(layer.weight, std=_INITIAL_DEVIATION)
    return nn.Sequential(first, nn.BatchNorm1d(dim), nn.ReLU(), last)
