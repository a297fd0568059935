"""Training of small heads on features: repeatable, on few threads.

Importing this module does not import torch; calling its functions does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from nouncut.compute.threads import blas_threads

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter

# Weight of the entropy that keeps clusters from emptying, in all trained baselines.
BALANCE_WEIGHT = 5.0


@contextmanager
def repeatable(
    random_state: int | np.random.RandomState | None, n_threads: int = 1
) -> Iterator[None]:
    """Seed torch and limit its threads and BLAS's for a while, and leave all as they were."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            'This method trains a network and needs torch. Run pip install "nouncut[bench]".'
        ) from error
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        with torch.random.fork_rng(devices=[]), blas_threads(n_threads):
            torch.manual_seed(int(check_random_state(random_state).randint(2**31)))
            yield
    finally:
        torch.set_num_threads(before)


def count_epochs(n_images: int, batch_size: int, n_epochs: int, min_steps: int) -> int:
    """Return how many epochs to train for.

    Epochs were published for data sets of many thousand images; a small one has few batches, and
    as many epochs would end long before the head has learnt anything.
    """
    return max(n_epochs, -(-min_steps // _count_batches(n_images, batch_size)))


def train(
    parameters: Iterable[Parameter],
    loss_of: Callable[[Tensor], Tensor],
    n_images: int,
    *,
    n_epochs: int,
    batch_size: int,
    learning_rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    before_epoch: Callable[[], None] = lambda: None,
) -> list[float]:
    """Minimise a loss with Adam."""
    import torch

    optimizer = torch.optim.Adam(list(parameters), lr=learning_rate, betas=betas, fused=True)
    n_batches = _count_batches(n_images, batch_size)
    losses = []
    for _ in range(n_epochs):
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


def one_of_each(neighbors: Tensor, batch: Tensor) -> Tensor:
    """Draw one neighbour of every image of a batch."""
    import torch

    return neighbors[batch, torch.randint(neighbors.shape[1], batch.shape)]


def _count_batches(n_images: int, batch_size: int) -> int:
    return max(1, round(n_images / batch_size))
