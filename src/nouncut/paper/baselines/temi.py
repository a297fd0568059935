"""TEMI: heads that learn from their own slow copies which neighbours belong together.

Adaloglou et al., "Exploring the Limits of Deep Image Clustering using Pretrained Models", BMVC
2023. Several heads (students) are trained at once; the teacher of each is the moving average of
its weights. Pairs of neighbours count as much as all teachers agree that they are one cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.nearest import nearest_images
from nouncut.paper.baselines.problem import Problem
from nouncut.paper.baselines.training import (
    Schedule,
    TrainedLabels,
    clip_scaled,
    draw_neighbors,
    repeatable,
    train,
)

if TYPE_CHECKING:
    from torch import Tensor

_NEIGHBORS = 50
_HIDDEN, _BOTTLENECK = 512, 256
_INITIAL_DEVIATION = 0.02
_TEMPERATURE = 0.1
_MARGINAL_MOMENTUM = 0.9
# Fewer training images have the short schedule.
_MANY_IMAGES = 10_000
_TINY = 1e-12


@dataclass(frozen=True)
class TemiSettings:
    """How many heads to train, how long, and how slowly teachers follow."""

    schedule: Schedule
    n_heads: int
    momentum: float
    beta: float = 0.6


def temi_settings(n_images: int) -> TemiSettings:
    """Return the published settings, or short ones for small data sets."""
    if n_images >= _MANY_IMAGES:
        # The published rate of 1e-4 is for batches of 256, and rises with them.
        schedule = Schedule(100, 1024, 4e-4, weight_decay=1e-4, optimizer="adamw", warmup=0.2)
        return TemiSettings(schedule, n_heads=16, momentum=0.996)
    # Teachers average over a twentieth of the steps, as in the published settings on CIFAR-10.
    schedule = Schedule(
        1, 64, 1e-3, min_steps=400, weight_decay=1e-4, optimizer="adamw", warmup=0.2
    )
    return TemiSettings(schedule, n_heads=2, momentum=0.95)


def temi(
    problem: Problem, random_state: int, settings: TemiSettings | None = None
) -> TrainedLabels:
    """Train heads to agree on neighbours; apply the teacher with the lowest loss in the end."""
    images = problem.unit_train_visual
    settings = settings or temi_settings(len(images))
    # No more than a cluster of mean size holds.
    n_neighbors = max(1, min(_NEIGHBORS, len(images) // problem.n_clusters))
    nearest = nearest_images(images, n_neighbors).indices
    with repeatable(random_state):
        import torch

        features, neighbors = torch.from_numpy(clip_scaled(images)), torch.from_numpy(nearest)
        student = _make_heads(settings.n_heads, images.shape[1], problem.n_clusters)
        teacher = _Heads(*(value.detach().clone() for value in student))
        marginal = torch.full((settings.n_heads, 1, problem.n_clusters), 1 / problem.n_clusters)
        head_losses = torch.zeros(settings.n_heads)

        def loss_of(batch: Tensor) -> Tensor:
            rows = features[torch.cat([batch, draw_neighbors(neighbors, batch)])]
            with torch.no_grad():
                q = _probabilities(teacher, rows)
                marginal.lerp_(q.mean(dim=1, keepdim=True), 1 - _MARGINAL_MOMENTUM)
            losses = temi_losses(_probabilities(student, rows), q, marginal, settings.beta)
            head_losses.add_(losses.detach())
            return losses.mean()

        def follow() -> None:
            with torch.no_grad():
                for slow, value in zip(teacher, student, strict=True):
                    slow.lerp_(value, 1 - settings.momentum)

        found = train(student, loss_of, len(images), settings.schedule, head_losses.zero_, follow)
        with torch.no_grad():
            test = torch.from_numpy(clip_scaled(problem.unit_visual))
            logits = _probabilities(teacher, test)[head_losses.argmin()]
        return TrainedLabels(order_by_size(logits.argmax(dim=1).numpy()), found)


def temi_losses(p: Tensor, q: Tensor, marginal: Tensor, beta: float) -> Tensor:
    """Return the loss of every head on a batch of pairs.

    p are the students' probabilities and q the teachers', of shape (n_heads, 2 n_pairs,
    n_clusters): all first images, then all second ones. Of a pair (x, y) the loss is
    ``-w(x, y) log sum_c (p_c(x) q_c(y))^beta / q_c``, averaged with that of (y, x); the weight w is
    the mean over heads of ``<q(x), q(y)>``, and q_c the marginal of the teacher.
    """
    import torch

    first, second = q.chunk(2, dim=1)
    weight = (first * second).sum(dim=2).mean(dim=0)
    swapped = torch.cat([second, first], dim=1)
    agreement = ((p * swapped).clamp_min(_TINY) ** beta / marginal).sum(dim=2).log()
    return -(weight.repeat(2) * agreement).mean(dim=1)


class _Heads(NamedTuple):
    """The weights of all heads, each (n_heads, inputs, outputs) or (n_heads, 1, outputs)."""

    first: Tensor
    first_bias: Tensor
    second: Tensor
    second_bias: Tensor
    directions: Tensor
    lengths: Tensor


def _make_heads(n_heads: int, dim: int, n_clusters: int) -> _Heads:
    import torch
    from torch.nn.init import trunc_normal_

    def weights(n_inputs: int, n_outputs: int) -> Tensor:
        return trunc_normal_(torch.empty(n_heads, n_inputs, n_outputs), std=_INITIAL_DEVIATION)

    heads = _Heads(
        first=weights(dim, _HIDDEN),
        first_bias=torch.zeros(n_heads, 1, _HIDDEN),
        second=weights(_HIDDEN, _BOTTLENECK),
        second_bias=torch.zeros(n_heads, 1, _BOTTLENECK),
        directions=torch.randn(n_heads, _BOTTLENECK, n_clusters),
        lengths=torch.ones(n_heads, 1, n_clusters),
    )
    return _Heads(*(value.requires_grad_() for value in heads))


def _probabilities(heads: _Heads, rows: Tensor) -> Tensor:
    """Return the probabilities of (n, d) images by every head, (n_heads, n, n_clusters)."""
    from torch.nn.functional import gelu, normalize

    hidden = gelu(rows @ heads.first + heads.first_bias)
    bottleneck = normalize(hidden @ heads.second + heads.second_bias, dim=2)
    last = heads.lengths * normalize(heads.directions, dim=1)
    return (bottleneck @ last / _TEMPERATURE).softmax(dim=2)
