"""Training of small heads on features: repeatable, on one thread.

torch takes seconds to import, so the functions import it when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from nouncut.compute.threads import blas_threads
from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.nearest import nearest_images
from nouncut.paper.optional_packages import require_package

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

# Weight of the entropy that keeps clusters from emptying, in all trained baselines.
BALANCE_WEIGHT = 5.0
# ImageNet, and the data sets that heads trained on ImageNet are applied to.
IMAGENET = frozenset({"imagenet", "imagenet-1k", "imagenet-c", "imagenet-v2", "imagenet-s"})
# The official codes of SIC, TEMI and TURTLE train on CLIP's features as they are. Those of
# ViT-B/32 have lengths of about 10; stored features are compared by cosine and have length one.
_CLIP_LENGTH = 10.0
_TINY = 1e-8


class TrainedLabels(NamedTuple):
    """The labels of a trained head, and the mean loss of every epoch."""

    labels: NDArray[np.intp]
    losses: list[float]


@dataclass(frozen=True)
class Schedule:
    """How long to train, and at what rate."""

    n_epochs: int
    batch_size: int
    learning_rate: float
    betas: tuple[float, float] = (0.9, 0.999)
    # Epochs were published for many thousand images. A small data set has few batches, and the
    # published epochs would end long before the head has learnt anything. It gets these many steps,
    # at a rate of its own if there is one.
    min_steps: int = 0
    small_rate: float | None = None
    weight_decay: float = 0.0
    optimizer: Literal["adam", "adamw"] = "adam"
    # The share of the steps in which the rate rises from 0.
    warmup: float = 0.0

    def count_batches(self, n_images: int) -> int:
        """Return the number of batches in an epoch."""
        return max(1, round(n_images / self.batch_size))

    def count_epochs(self, n_images: int) -> int:
        """Return the number of epochs, more than published for small data sets."""
        return max(self.n_epochs, -(-self.min_steps // self.count_batches(n_images)))

    def rate(self, n_images: int, share: float) -> float:
        """Return the learning rate after a share of the steps."""
        is_small = self.count_epochs(n_images) > self.n_epochs
        peak = self.small_rate if is_small and self.small_rate else self.learning_rate
        return peak * min(1.0, share / self.warmup) if self.warmup else peak


def linear_head_schedule(n_epochs: int, batch_size: int, weight_decay: float) -> Schedule:
    """Return what SCAN and SIC share.

    Small data sets get 4,000 steps at ten times the rate: as far as the 39,000 steps of 100 epochs
    on CIFAR-10 go.
    """
    return Schedule(
        n_epochs,
        batch_size,
        learning_rate=1e-4,
        min_steps=4000,
        small_rate=1e-3,
        weight_decay=weight_decay,
    )


@contextmanager
def repeatable(random_state: int) -> Iterator[None]:
    """Seed torch and limit it and BLAS to one thread; restore all of it afterwards."""
    require_package("torch", "Training a network")
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]), blas_threads(1):
            torch.manual_seed(int(check_random_state(random_state).randint(2**31)))
            yield
    finally:
        torch.set_num_threads(before)


def train(
    parameters: Iterable[Tensor],
    loss_of: Callable[[Tensor], Tensor],
    n_images: int,
    schedule: Schedule,
    before_epoch: Callable[[], object] = lambda: None,
    after_step: Callable[[], object] = lambda: None,
) -> list[float]:
    """Minimise a loss of batches of image numbers; return the mean of every epoch."""
    import torch

    optimizer = make_optimizer(parameters, schedule)
    n_batches, n_epochs = schedule.count_batches(n_images), schedule.count_epochs(n_images)
    losses = []
    for epoch in range(n_epochs):
        before_epoch()
        total = 0.0
        for number, batch in enumerate(torch.randperm(n_images).tensor_split(n_batches), start=1):
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate(n_images, (epoch + number / n_batches) / n_epochs)
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after_step()
            total += loss.item()
        losses.append(total / n_batches)
    return losses


def make_optimizer(parameters: Iterable[Tensor], schedule: Schedule) -> Optimizer:
    """Return the optimizer of a schedule."""
    from torch.optim import Adam, AdamW

    return (Adam if schedule.optimizer == "adam" else AdamW)(
        parameters,
        schedule.learning_rate,
        schedule.betas,
        weight_decay=schedule.weight_decay,
        fused=True,
    )


def clip_scaled(unit_rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows of the length that CLIP's features have."""
    return np.float32(_CLIP_LENGTH) * unit_rows


def neighbors_and_self(features: NDArray[np.float32], n_neighbors: int) -> NDArray[np.intp]:
    """Return every image and its nearest ones, as SCAN and SIC draw them."""
    nearest = nearest_images(features, n_neighbors).indices
    return np.column_stack([np.arange(len(features)), nearest])


def draw_neighbors(neighbors: Tensor, batch: Tensor) -> Tensor:
    """Draw one neighbour of every image of a batch."""
    import torch

    return neighbors[batch, torch.randint(neighbors.shape[1], batch.shape)]


def head_labels(head: Module, features: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the cluster that a head gives every image, largest cluster first."""
    import torch

    head.eval()
    with torch.no_grad():
        return order_by_size(head(torch.from_numpy(features)).argmax(dim=1).numpy())


def neighbor_consistency(p: Tensor, q: Tensor) -> Tensor:
    """Return ``-mean log <p, q>``: low where images agree with their neighbours."""
    return -(p * q).sum(dim=1).clamp_min(_TINY).log().mean()


def balance(p: Tensor) -> Tensor:
    """Return the entropy of the mean of p: high where clusters are equally large."""
    mean = p.mean(dim=0)
    return -(mean * mean.clamp_min(_TINY).log()).sum()


def cluster_contrast(p: Tensor, q: Tensor, temperature: float) -> Tensor:
    """Return InfoNCE over clusters instead of images.

    A cluster's column in one matrix, over the images of a batch, shall be like its column in the
    other matrix, and unlike all other columns of both.
    """
    import torch
    from torch.nn import functional

    n_clusters = p.shape[1]
    columns = functional.normalize(torch.cat([p, q], dim=1).T, dim=1)
    cosines = columns @ columns.T / temperature
    own = torch.eye(2 * n_clusters, dtype=torch.bool)
    partners = torch.arange(2 * n_clusters).roll(n_clusters)
    return functional.cross_entropy(cosines.masked_fill(own, -torch.inf), partners)
