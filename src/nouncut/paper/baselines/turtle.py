"""TURTLE: the labels that linear classifiers learn most easily, found without labels.

Gadetsky et al., "Let Go of Your Labels with Unsupervised Transfer", ICML 2024. A linear task
encoder labels the images, a linear classifier is trained on these labels for a few steps, and the
encoder is changed so that the classifier errs less. Several models' features guide it together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.threads import blas_threads
from nouncut.method.labels import order_by_size
from nouncut.paper.baselines.problem import unit_features
from nouncut.paper.baselines.training import (
    Schedule,
    TrainedLabels,
    clip_scaled,
    make_optimizer,
    repeatable,
)

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

_N_FOLDS = 10
_MAX_ITERATIONS = 1000


@dataclass(frozen=True)
class TurtleSettings:
    """How long and at what rates to train.

    Published are 6,000 iterations, and rates between 0.001 and 0.01. An outer rate of 0.01 needs
    fewer iterations.
    """

    n_iterations: int = 300
    n_inner_steps: int = 10
    outer_rate: float = 0.01
    inner_rate: float = 0.001
    batch_size: int = 10_000
    # Weight of the entropy that keeps clusters from emptying.
    gamma: float = 10.0


# The right rate depends on the number and the scale of features. Half-whitened ones need more than
# was published for CLIP's.
_SETTINGS = tuple(TurtleSettings(inner_rate=rate) for rate in (0.001, 0.01, 0.1))


def turtle(
    spaces: Sequence[NDArray[Any]],
    train_spaces: Sequence[NDArray[Any]],
    n_clusters: int,
    random_state: int,
    settings: Sequence[TurtleSettings] = _SETTINGS,
) -> TrainedLabels:
    """Label the images of `spaces` by task encoders that are trained on `train_spaces`.

    A space holds one model's features of all images, of shape (n_images, d). Of several settings,
    the one whose labels of the training images generalise best is used.
    """
    with repeatable(random_state):
        import torch

        trained, applied = (
            [torch.from_numpy(clip_scaled(unit_features(space))) for space in group]
            for group in (train_spaces, spaces)
        )
        fits = [_fit(trained, n_clusters, one) for one in settings]
        labels = {number: _label(fit.encoders, trained) for number, fit in enumerate(fits)}
        best = fits[0 if len(fits) == 1 else choose_by_generalization(train_spaces, labels)]
        return TrainedLabels(order_by_size(_label(best.encoders, applied)), best.losses)


class _Fit(NamedTuple):
    """Task encoders, one per space, and the loss of every iteration."""

    encoders: list[Module]
    losses: list[float]


def _fit(spaces: list[Tensor], n_clusters: int, settings: TurtleSettings) -> _Fit:
    import torch
    from torch.nn.utils.parametrizations import weight_norm

    encoders = [weight_norm(torch.nn.Linear(space.shape[1], n_clusters)) for space in spaces]
    parameters = [value for encoder in encoders for value in encoder.parameters()]
    optimizer = make_optimizer(parameters, Schedule(0, 0, settings.outer_rate))
    losses = []
    for _ in range(settings.n_iterations):
        rows = torch.randperm(len(spaces[0]))[: settings.batch_size]
        batch = [space[rows] for space in spaces]
        p = _probabilities(encoders, batch)
        labels = torch.stack(p).mean(dim=0).detach()
        logits = [_fit_classifier(space, labels, settings) for space in batch]
        loss = turtle_loss(p, logits, settings.gamma)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return _Fit(encoders, losses)


def _label(encoders: Sequence[Module], spaces: Sequence[Tensor]) -> NDArray[np.intp]:
    import torch

    with torch.no_grad():
        p = torch.stack(_probabilities(encoders, spaces)).mean(dim=0)
    return np.asarray(p.argmax(dim=1).numpy())


def _probabilities(encoders: Sequence[Module], spaces: Sequence[Tensor]) -> list[Tensor]:
    pairs = zip(encoders, spaces, strict=True)
    return [encoder(space).softmax(dim=1) for encoder, space in pairs]


def turtle_loss(p: Sequence[Tensor], logits: Sequence[Tensor], gamma: float) -> Tensor:
    """Return the sum over spaces of ``CE(classifier, labels) - gamma H(mean p)``.

    p are the task encoders' probabilities, whose mean over spaces are the labels; logits are those
    of the classifiers, which count as constants.
    """
    import torch
    from torch.nn import functional

    labels = torch.stack(list(p)).mean(dim=0)
    errors = [functional.cross_entropy(space, labels) for space in logits]
    entropies = [torch.special.entr(space.mean(dim=0)).sum() for space in p]
    return torch.stack(errors).sum() - gamma * torch.stack(entropies).sum()


def _fit_classifier(features: Tensor, labels: Tensor, settings: TurtleSettings) -> Tensor:
    """Train a new linear classifier for a few steps; return its logits."""
    import torch

    classifier = torch.nn.Linear(features.shape[1], labels.shape[1])
    schedule = Schedule(0, 0, settings.inner_rate)
    optimizer = make_optimizer(classifier.parameters(), schedule)
    with torch.no_grad():
        for _ in range(settings.n_inner_steps):
            # The gradient of the cross-entropy; autograd takes longer.
            errors = (classifier(features).softmax(dim=1) - labels) / len(labels)
            classifier.weight.grad = errors.T @ features
            classifier.bias.grad = errors.sum(dim=0)
            optimizer.step()
        logits: Tensor = classifier(features)
    return logits


def generalization_score(
    spaces: Sequence[NDArray[Any]], labels: NDArray[Any], random_state: int = 0
) -> float:
    """Return how well linear classifiers predict labels of images that they were not trained on.

    TURTLE chooses its settings by this score, which needs no true labels. It compares any labels
    of the same images that have the same number of clusters: fewer clusters are easier to predict.

    Parameters
    ----------
    spaces : sequence of array-like of shape (n_images, d)
        Features of the images, one array per model.
    labels : array-like of int of shape (n_images,)
        Clusters that a method found.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    float
        Accuracy of logistic regression in ten-fold cross-validation, the mean over spaces.

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.paper.baselines.turtle import generalization_score
    >>> images = np.random.default_rng(0).normal(size=(60, 4)) + 5 * np.eye(4)[np.arange(60) % 3]
    >>> generalization_score([images], np.arange(60) % 3)
    1.0
    >>> generalization_score([images], np.arange(60) // 20) < 0.7
    True
    """
    with blas_threads(1):
        return float(np.mean([_cross_validate(space, labels, random_state) for space in spaces]))


def choose_by_generalization(
    spaces: Sequence[NDArray[Any]], candidates: Mapping[Any, NDArray[Any]], random_state: int = 0
) -> Any:
    """Return the setting whose labels generalise best; the first of equals."""
    scores = {
        setting: generalization_score(spaces, labels, random_state)
        for setting, labels in candidates.items()
    }
    return max(scores, key=scores.__getitem__)


def _cross_validate(features: NDArray[Any], labels: NDArray[Any], random_state: int) -> float:
    from sklearn.linear_model import LogisticRegression

    rows = clip_scaled(unit_features(np.asarray(features)))
    labels = np.asarray(labels)
    order = np.random.default_rng(random_state).permutation(len(rows))
    accuracies = []
    for held_out in np.array_split(order, min(_N_FOLDS, len(rows))):
        is_used = np.ones(len(rows), bool)
        is_used[held_out] = False
        if len(np.unique(labels[is_used])) < 2:
            predicted = labels[is_used][:1]
        else:
            model = LogisticRegression(max_iter=_MAX_ITERATIONS)
            predicted = model.fit(rows[is_used], labels[is_used]).predict(rows[held_out])
        accuracies.append(np.mean(predicted == labels[held_out]))
    return float(np.mean(accuracies))
