"""SCAN's second step: a linear head that agrees with neighbours and uses all clusters."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from nouncut.compute.threads import count_threads
from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.method import Baseline, unit_array
from nouncut.paper.baselines.neighbors import nearest_images
from nouncut.paper.baselines.training import (
    BALANCE_WEIGHT,
    count_epochs,
    one_of_each,
    repeatable,
    train,
)


class SCAN(Baseline):
    """Train a linear head to give images the clusters of their neighbours [1]_.

    The loss is ``-mean log <p, p_neighbour> - 5 H(mean p)``.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 20,
        n_epochs: int = 100,
        min_steps: int = 8000,
        batch_size: int = 128,
        learning_rate: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_epochs = n_epochs
        self.min_steps = min_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster images."""
        features = unit_array(X)
        nearest = nearest_images(features, self.n_neighbors).indices
        with repeatable(self.random_state, count_threads(self.n_jobs)):
            import torch

            from nouncut.paper.baselines.losses import balance, neighbor_consistency

            images, neighbors = torch.from_numpy(features), torch.from_numpy(nearest)
            head = torch.nn.Linear(features.shape[1], self.n_clusters)

            def loss_of(batch: torch.Tensor) -> torch.Tensor:
                rows = torch.cat([batch, one_of_each(neighbors, batch)])
                p, q = head(images[rows]).softmax(dim=1).chunk(2)
                return neighbor_consistency(p, q) - BALANCE_WEIGHT * balance(p)

            self.losses_ = train(
                head.parameters(),
                loss_of,
                len(features),
                n_epochs=count_epochs(
                    len(features), self.batch_size, self.n_epochs, self.min_steps
                ),
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
            )
            with torch.no_grad():
                self.labels_ = order_by_size(head(images).argmax(dim=1).numpy())
        return self
