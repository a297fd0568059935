"""The temperature of the softmax over nouns, chosen without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

# CLIP's image-noun cosines have a standard deviation of about 0.03. At the published temperature of
# 0.04 the softmax then has a relative perplexity of 0.75 to 0.8.
TARGET_PERPLEXITY = 0.8
PUBLISHED_TAU = 0.04
_SEARCHED = (1e-4, 1e2)
_SAMPLE_SIZE = 256


def relative_perplexity(cosines: NDArray[Any], tau: float) -> float:
    """Return the perplexity of the softmax over nouns, as a share of them, averaged over images."""
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

    Encoders differ in the spread of their image-noun cosines, so the same temperature is sharp for
    one and soft for another. A fixed perplexity transfers the published setting from CLIP to any
    other encoder, without labels.

    Parameters
    ----------
    features : ndarray of shape (n_images, d)
        Unit image features in the space of the nouns; at most 256 of them, evenly spaced, are
        used.
    noun_features : sequence of ndarray of shape (n_nouns, d)
        Noun features, one array per prompt.
    target : float, default=0.8
        Mean relative perplexity over images and prompts.

    Returns
    -------
    float
        The temperature; the published 0.04 if every temperature gives the same softmax (one noun,
        or nouns that are equally near to every image).

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
