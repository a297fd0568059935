"""Choosing the temperature of the softmax over nouns without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

# CLIP's image-noun cosines spread by about 0.03 around their mean, and the published
# temperature of 0.04 then leaves three quarters to four fifths of the nouns in play.
TARGET_PERPLEXITY = 0.8
PUBLISHED_TAU = 0.04
_SEARCHED = (1e-4, 1e2)
_SAMPLE_SIZE = 256


def relative_perplexity(cosines: NDArray[Any], tau: float) -> float:
    """Return the share of the nouns that an image's softmax is spread over, averaged over images."""
    logits = (cosines - cosines.max(axis=1, keepdims=True)) / tau
    weights = np.exp(logits)
    totals = weights.sum(axis=1)
    entropy = np.log(totals) - np.einsum("ij,ij->i", weights, logits) / totals
    return float(np.exp(entropy).mean() / cosines.shape[1])


def choose_tau(
    features: NDArray[Any],
    noun_features: Sequence[NDArray[Any]],
    target: float = TARGET_PERPLEXITY,
) -> float:
    """Choose the temperature at which the softmax over nouns has the target relative perplexity.

    A temperature means another sharpness for every encoder, because encoders differ in how far
    their image-noun cosines spread. The perplexity does not: fixing it carries the published
    setting from CLIP over to any other encoder, without labels.

    Parameters
    ----------
    features : ndarray of shape (n_images, d)
        Unit image features in the space of the nouns. At most 256 of them, evenly spaced, are
        looked at.
    noun_features : sequence of ndarray of shape (n_nouns, d)
        Noun features, one array per prompt.
    target : float, default=0.8
        Mean relative perplexity over images and prompts.

    Returns
    -------
    float
        The temperature; the published 0.04 where every temperature gives the same softmax (one
        noun, or nouns that no image tells apart).

    Examples
    --------
    >>> import numpy as np
    >>> from nouncut.method.temperature import choose_tau
    >>> from nouncut.compute.rows import unit_rows
    >>> rng = np.random.default_rng(0)
    >>> images, nouns = (unit_rows(rng.normal(size=(200, 64))) for _ in range(2))
    >>> tau, wider = choose_tau(images, [nouns]), choose_tau(images, [2 * nouns])
    >>> bool(np.isclose(wider, 2 * tau))
    True
    """
    picked = np.linspace(0, len(features) - 1, min(len(features), _SAMPLE_SIZE)).astype(np.intp)
    sample = features[np.unique(picked)].astype(np.float64)
    cosines = [sample @ nouns.T.astype(np.float64) for nouns in noun_features]

    def excess(log_tau: float) -> float:
        tau = float(np.exp(log_tau))
        return float(np.mean([relative_perplexity(c, tau) for c in cosines])) - target

    low, high = np.log(_SEARCHED)
    if excess(low) >= 0:
        return PUBLISHED_TAU
    if excess(high) <= 0:
        return _SEARCHED[1]
    return float(np.exp(brentq(excess, low, high, xtol=1e-4)))
