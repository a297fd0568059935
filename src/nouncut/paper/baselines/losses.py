"""What the trained baselines minimise. Importing this module imports torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_TINY = 1e-8


def neighbor_consistency(p: Tensor, q: Tensor) -> Tensor:
    """Return how little images agree with their neighbours.

    Parameters
    ----------
    p, q : Tensor of shape (n, n_clusters)
        Cluster probabilities of images, and of a neighbour of each.

    Returns
    -------
    Tensor
        ``-mean log <p, q>``: the binary cross-entropy of the inner products with 1.

    Examples
    --------
    >>> import torch
    >>> from nouncut.paper.baselines.losses import neighbor_consistency
    >>> p = torch.tensor([[1.0, 0.0]])
    >>> round(neighbor_consistency(p, torch.tensor([[0.5, 0.5]])).item(), 3)
    0.693
    """
    return -(p * q).sum(dim=1).clamp_min(_TINY).log().mean()


def balance(p: Tensor) -> Tensor:
    """Return how evenly images spread over clusters.

    Parameters
    ----------
    p : Tensor of shape (n, n_clusters)
        Cluster probabilities.

    Returns
    -------
    Tensor
        The entropy of their mean; the logarithm of the number of clusters where all are equal.

    Examples
    --------
    >>> import torch
    >>> from nouncut.paper.baselines.losses import balance
    >>> round(balance(torch.eye(2)).item(), 3)
    0.693
    """
    mean = p.mean(dim=0)
    return -(mean * mean.clamp_min(_TINY).log()).sum()


def cluster_contrast(p: Tensor, q: Tensor, temperature: float) -> Tensor:
    """Return InfoNCE over clusters instead of images.

    The column of a cluster in one matrix, over the images of a batch, shall be like the column of
    the same cluster in the other matrix, and unlike all other columns of both.

    Parameters
    ----------
    p, q : Tensor of shape (n, n_clusters)
        Cluster probabilities of the same images from two sides.
    temperature : float
        Divides the cosines of columns.

    Returns
    -------
    Tensor
        The mean over the 2 K columns.

    Examples
    --------
    >>> import torch
    >>> from nouncut.paper.baselines.losses import cluster_contrast
    >>> round(cluster_contrast(torch.eye(2), torch.eye(2), 1.0).item(), 3)
    0.551
    """
    n_clusters = p.shape[1]
    columns = functional.normalize(torch.cat([p, q], dim=1).T, dim=1)
    cosines = columns @ columns.T / temperature
    own = torch.eye(2 * n_clusters, dtype=torch.bool)
    partners = torch.arange(2 * n_clusters).roll(n_clusters)
    return functional.cross_entropy(cosines.masked_fill(own, -torch.inf), partners)
