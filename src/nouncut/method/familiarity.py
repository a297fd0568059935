"""Familiarity of new images: how much they look like the known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.method.neighbors import kernel_neighbors

# One similar image may be chance; clusters of a handful of images must still be familiar.
N_NEAREST = 5
_SAMPLE_SIZE = 5000
SHARE_UNFAMILIAR = 0.05


def familiarity(
    features: NDArray[Any], queries: NDArray[Any], *, n_threads: int = 1
) -> NDArray[np.float32]:
    """Return the mean cosine of every query to its five nearest images.

    The cosines are the inner products of the rows: unit rows, or those of
    `Projection.cosine_rows`.
    """
    cosines = _nearest_cosines(features, queries, N_NEAREST, n_threads)
    return np.asarray(cosines.mean(axis=1))


def least_familiarity(features: NDArray[Any], *, n_threads: int = 1) -> float:
    """Return the familiarity that 95 % of the known images reach among the others.

    Images below it are probably of an unseen kind.
    """
    sample = features[:: -(-len(features) // _SAMPLE_SIZE)]
    # The nearest one is the image itself.
    cosines = _nearest_cosines(features, sample, N_NEAREST + 1, n_threads)[:, 1:]
    return float(np.quantile(cosines.mean(axis=1), SHARE_UNFAMILIAR)) if cosines.size else 0.0


def _nearest_cosines(
    features: NDArray[Any], queries: NDArray[Any], q: int, n_threads: int
) -> NDArray[np.float32]:
    images, others = (np.asarray(rows, np.float32) for rows in (features, queries))
    found = kernel_neighbors(
        images, [], min(q, len(images)), queries=(others, []), n_threads=n_threads
    )
    return found[0].values
