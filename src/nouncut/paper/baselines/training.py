"""Training of small heads on features: repeatable, on one thread.

torch takes seconds to import, so the functions import it when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from nouncut.compute.threads import blas_threads
from nouncut.method.labels import order_by_size
from nouncut.paper.optional_packages import require_package

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module, Parameter

# Weight of the entropy that keeps clusters from emptying, in all trained baselines.
BALANCE_WEIGHT = 5.0
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
    # published epochs would end long before the head has learnt anything.
    min_steps: int = 0

    def count_batches(self, n_images: int) -> int:
        """Return the number of batches in an epoch."""
        return max(1, round(n_images / self.batch_size))

    def count_epochs(self, n_images: int) -> int:
        """Return the number of epochs, more than published for small data sets."""
        return max(self.n_epochs, -(-self.min_steps // self.count_batches(n_images)))


# What SCAN and SIC share.
LINEAR_HEAD_SCHEDULE = Schedule(n_epochs=100, batch_size=128, learning_rate=1e-4, min_steps=8000)


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
    parameters: Iterable[Parameter],
    loss_of: Callable[[Tensor], Tensor],
    n_images: int,
    schedule: Schedule,
    before_epoch: Callable[[], None] = lambda: None,
) -> list[float]:
    """Minimise a loss of batches of image numbers with Adam; return the mean of every epoch."""
    import torch

    optimizer = torch.optim.Adam(
        list(parameters), lr=schedule.learning_rate, betas=schedule.betas, fused=True
    )
    n_batches = schedule.count_batches(n_images)
    losses = []
    for _ in range(schedule.count_epochs(n_images)):
        before_epoch()
        total = 0.0
        for batch in torch.tensor_split(torch.randperm(n_images), n_batches):
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / n_batches)
    return losses


def draw_neighbors(neighbors: Tensor, batch: Tensor) -> Tensor:
    """Draw one neighbour of every image of a batch."""
    import torch

    return neighbors[batch, torch.randint(neighbors.shape[1], batch.shape)]


def head_labels(head: Module, features: Tensor) -> NDArray[np.intp]:
    """Return the cluster that a head gives every image, largest cluster first."""
    import torch

    head.eval()
    with torch.no_grad():
        return order_by_size(head(features).argmax(dim=1).numpy())


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
