"""TAC with training: an image head and a text head that teach each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nouncut.compute.threads import count_threads
from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.method import Baseline, unit_array
from nouncut.paper.baselines.neighbors import nearest_images
from nouncut.paper.baselines.tac import TAC_TAU, text_counterparts
from nouncut.paper.baselines.training import (
    BALANCE_WEIGHT,
    count_epochs,
    one_of_each,
    repeatable,
    train,
)
from nouncut.words.filters import mean_prompt_features

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_LEARNING_RATE = 1e-3
_BETAS = (0.9, 0.99)
_MANY_CLUSTERS = 100


class Schedule(NamedTuple):
    """How long to train, on batches of what size, at what temperature."""

    n_epochs: int
    batch_size: int
    temperature: float


_FEW, _MANY = Schedule(20, 512, 0.5), Schedule(100, 8192, 5.0)


class TACHeads(Baseline):
    """Train two heads, on images and on their text counterparts, to agree across neighbours [1]_.

    With D the contrast of clusters (`nouncut.paper.baselines.losses.cluster_contrast`), p an image's
    probabilities by the image head and q its counterpart's by the text head, the loss is
    ``D(p, q of a text neighbour) + D(q, p of an image neighbour) - mean log <q, p>
    - 5 (H(mean q) + H(mean p))``. The image head has the last word.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 50,
        schedule: Schedule | None = None,
        min_steps: int = 200,
        tau: float = TAC_TAU,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.schedule = schedule
        self.min_steps = min_steps
        self.tau = tau
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        noun_features: ArrayLike | Sequence[ArrayLike],
        semantic_features: ArrayLike | None = None,
    ) -> Self:
        """Cluster images."""
        images = unit_array(X)
        semantic = (
            images
            if semantic_features is None
            else unit_array(semantic_features, "semantic_features")
        )
        texts = text_counterparts(semantic, mean_prompt_features(noun_features), self.tau)
        with repeatable(self.random_state, count_threads(self.n_jobs)):
            self.labels_ = order_by_size(self._train(images, texts))
        return self

    def _train(self, images: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.intp]:
        import torch

        schedule = self.schedule or (_FEW if self.n_clusters < _MANY_CLUSTERS else _MANY)
        sides = [_Side(features, self.n_clusters, self.n_neighbors) for features in (images, texts)]
        image_side, text_side = sides

        def loss_of(batch: Tensor) -> Tensor:
            p, p_near = image_side.probabilities(batch)
            q, q_near = text_side.probabilities(batch)
            return heads_loss(p, q, p_near, q_near, schedule.temperature)

        self.losses_ = train(
            [parameter for side in sides for parameter in side.head.parameters()],
            loss_of,
            len(images),
            n_epochs=count_epochs(
                len(images), schedule.batch_size, schedule.n_epochs, self.min_steps
            ),
            batch_size=schedule.batch_size,
            learning_rate=_LEARNING_RATE,
            betas=_BETAS,
        )
        image_side.head.eval()
        with torch.no_grad():
            labels: NDArray[np.intp] = image_side.head(image_side.features).argmax(dim=1).numpy()
        return labels


class _Side:
    """One modality: its features, their neighbours and its head."""

    def __init__(self, features: NDArray[np.float32], n_clusters: int, n_neighbors: int) -> None:
        import torch

        self.features = torch.from_numpy(features)
        self.neighbors = torch.from_numpy(nearest_images(features, n_neighbors).indices)
        self.head = _make_head(features.shape[1], n_clusters)

    def probabilities(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities of images and of a neighbour of each."""
        import torch

        rows = torch.cat([batch, one_of_each(self.neighbors, batch)])
        own, near = self.head(self.features[rows]).softmax(dim=1).chunk(2)
        return own, near


def heads_loss(p: Tensor, q: Tensor, p_near: Tensor, q_near: Tensor, temperature: float) -> Tensor:
    """Return the loss of a batch."""
    from nouncut.paper.baselines.losses import balance, cluster_contrast, neighbor_consistency

    contrast = cluster_contrast(p, q_near, temperature) + cluster_contrast(q, p_near, temperature)
    spread = balance(q) + balance(p)
    return contrast + neighbor_consistency(q, p) - BALANCE_WEIGHT * spread


def _make_head(dim: int, n_clusters: int) -> Module:
    from torch import nn

    return nn.Sequential(
        nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, n_clusters)
    )
