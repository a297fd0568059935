"""SIC: a linear head taught by neighbours and by nouns' pseudo-labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nouncut.compute.rows import unit_rows
from nouncut.compute.threads import count_threads
from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.kmeans import SphericalKMeans, nearest_centers
from nouncut.paper.baselines.method import Baseline, unit_array
from nouncut.paper.baselines.neighbors import nearest_images
from nouncut.paper.baselines.training import (
    BALANCE_WEIGHT,
    count_epochs,
    one_of_each,
    repeatable,
    train,
)

if TYPE_CHECKING:
    from torch import Tensor

_NOUNS_PER_CENTER = 500
# Nouns closer than this to the mean noun say nothing in particular.
_MOST_COMMON = 0.95
_CONFIDENT_SHARE = 0.9
_NOUNS_PER_CLUSTER = 30


class SIC(Baseline):
    """Train a linear head on neighbours and on pseudo-labels that nouns give [1]_.

    At the start of every epoch, a cluster's image centre is the mean of the images it is surest
    of, its text centre the mean of the 30 nouns nearest to that, and every image's pseudo-label
    the cluster of the nearest text centre. The loss is
    ``-mean log <p, p_neighbour> - 5 H(mean p) + cross-entropy with the pseudo-labels``.
    The number of epochs is fixed beforehand: no label is looked at.
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

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        candidate_features: ArrayLike,
        semantic_features: ArrayLike | None = None,
    ) -> Self:
        """Cluster images."""
        images = unit_array(X)
        semantic = (
            images
            if semantic_features is None
            else unit_array(semantic_features, "semantic_features")
        )
        candidates = unit_array(candidate_features, "candidate_features")
        kmeans = SphericalKMeans(
            self.n_clusters, random_state=self.random_state, n_jobs=self.n_jobs
        ).fit(semantic)
        self.nouns_ = nearby_nouns(kmeans.cluster_centers_, candidates)
        with repeatable(self.random_state, count_threads(self.n_jobs)):
            labels = self._train(images, semantic, candidates[self.nouns_])
        self.labels_ = order_by_size(labels)
        return self

    def _train(
        self,
        images: NDArray[np.float32],
        semantic: NDArray[np.float32],
        nouns: NDArray[np.float32],
    ) -> NDArray[np.intp]:
        import torch

        features = torch.from_numpy(images)
        neighbors = torch.from_numpy(nearest_images(images, self.n_neighbors).indices)
        head = torch.nn.Linear(images.shape[1], self.n_clusters)
        targets = torch.empty(len(images), dtype=torch.int64)

        def renew_targets() -> None:
            with torch.no_grad():
                confidence = head(features).softmax(dim=1).numpy()
            targets.copy_(torch.from_numpy(pseudo_labels(confidence, semantic, nouns)))

        def loss_of(batch: Tensor) -> Tensor:
            logits, near = head(features[torch.cat([batch, one_of_each(neighbors, batch)])]).chunk(
                2
            )
            return sic_loss(logits, near, targets[batch])

        self.losses_ = train(
            head.parameters(),
            loss_of,
            len(images),
            n_epochs=count_epochs(len(images), self.batch_size, self.n_epochs, self.min_steps),
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            before_epoch=renew_targets,
        )
        with torch.no_grad():
            labels: NDArray[np.intp] = head(features).argmax(dim=1).numpy()
        return labels


def sic_loss(logits: Tensor, near_logits: Tensor, targets: Tensor) -> Tensor:
    """Return the loss of a batch."""
    from torch.nn import functional

    from nouncut.paper.baselines.losses import balance, neighbor_consistency

    p, near = logits.softmax(dim=1), near_logits.softmax(dim=1)
    taught = functional.cross_entropy(logits, targets)
    return neighbor_consistency(p, near) - BALANCE_WEIGHT * balance(p) + taught


def nearby_nouns(centers: NDArray[np.float32], nouns: NDArray[np.float32]) -> NDArray[np.intp]:
    """Choose the nouns near any centre that are not too common."""
    kept = np.unique(_largest(centers @ nouns.T, _NOUNS_PER_CENTER))
    mean = unit_rows(nouns.mean(axis=0, keepdims=True))[0]
    telling = kept[nouns[kept] @ mean < _MOST_COMMON]
    return telling if len(telling) >= _NOUNS_PER_CLUSTER else kept


def pseudo_labels(
    confidence: NDArray[np.float32], semantic: NDArray[np.float32], nouns: NDArray[np.float32]
) -> NDArray[np.intp]:
    """Return the cluster that nouns would give every image."""
    n_images, n_clusters = confidence.shape
    n_sure = max(1, round(_CONFIDENT_SHARE * n_images / n_clusters))
    surest = _largest(confidence.T, n_sure).T
    image_centers = unit_rows(semantic[surest].mean(axis=0))
    nearest = _largest(image_centers @ nouns.T, _NOUNS_PER_CLUSTER)
    text_centers = unit_rows(nouns[nearest].mean(axis=1))
    return nearest_centers(semantic, text_centers).labels


def _largest(rows: NDArray[np.float32], n: int) -> NDArray[np.intp]:
    """Return where the n largest entries of every row are, in any order."""
    if n >= rows.shape[1]:
        return np.tile(np.arange(rows.shape[1]), (len(rows), 1))
    return np.argpartition(-rows, n, axis=1)[:, :n]
