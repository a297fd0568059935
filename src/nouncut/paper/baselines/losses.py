"""What the trained baselines minimise. Importing this module imports torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_TINY = 1e-8


def neighbor_consistency(p: Tensor, q: Tensor) -> Tensor:
    """Return how little images agree with their neighbours."""
    return -(p * q).sum(dim=1).clamp_min(_TINY).log().mean()


def balance(p: Tensor) -> Tensor:
    """Return how evenly images spread over clusters."""
    mean = p.mean(dim=0)
    return -(mean * mean.clamp_min(_TINY).log()).sum()


def cluster_contrast(p: Tensor, q: Tensor, temperature: float) -> Tensor:
    """Return InfoNCE over clusters instead of images.

    The column of a cluster in one matrix, over the images of a batch, shall be like the column of
    the same cluster in the other matrix, and unlike all other columns of both.
    """
    n_clusters = p.shape[1]
    columns = functional.normalize(torch.cat([p, q], dim=1).T, dim=1)
    cosines = columns @ columns.T / temperature
    own = torch.eye(2 * n_clusters, dtype=torch.bool)
    partners = torch.arange(2 * n_clusters).roll(n_clusters)
    return functional.cross_entropy(cosines.masked_fill(own, -torch.inf), partners)
