"""SCAN's second step: a linear head that agrees with neighbours and uses all clusters.

Van Gansbeke et al., "SCAN: Learning to Classify Images without Labels", ECCV 2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nouncut.paper.baselines.nearest import nearest_images
from nouncut.paper.baselines.training import (
    BALANCE_WEIGHT,
    LINEAR_HEAD_SCHEDULE,
    Schedule,
    TrainedLabels,
    balance,
    draw_neighbors,
    head_labels,
    neighbor_consistency,
    repeatable,
    train,
)

if TYPE_CHECKING:
    from torch import Tensor

_NEIGHBORS = 20


def scan(
    images: NDArray[np.float32],
    n_clusters: int,
    random_state: int,
    schedule: Schedule = LINEAR_HEAD_SCHEDULE,
) -> TrainedLabels:
    """Train a linear head on ``-mean log <p, p_neighbour> - 5 H(mean p)``."""
    nearest = nearest_images(images, _NEIGHBORS).indices
    with repeatable(random_state):
        import torch

        features, neighbors = torch.from_numpy(images), torch.from_numpy(nearest)
        head = torch.nn.Linear(images.shape[1], n_clusters)

        def loss_of(batch: Tensor) -> Tensor:
            rows = torch.cat([batch, draw_neighbors(neighbors, batch)])
            p, near = head(features[rows]).softmax(dim=1).chunk(2)
            return neighbor_consistency(p, near) - BALANCE_WEIGHT * balance(p)

        losses = train(head.parameters(), loss_of, len(images), schedule)
        return TrainedLabels(head_labels(head, features), losses)
