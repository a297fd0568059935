"""How much an image looks like the images it is put among."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.method.neighbors import kernel_neighbors

# One look-alike may be chance; kinds of a handful of images must still be familiar.
_N_LOOK_ALIKES = 5
_SAMPLE_SIZE = 5000
_SHARE_UNFAMILIAR = 0.05


def familiarity(
    features: NDArray[Any], queries: NDArray[Any], *, n_threads: int = 1
) -> NDArray[np.float32]:
    """Return the mean cosine of new images and their five nearest images."""
    cosines = _nearest_cosines(features, queries, _N_LOOK_ALIKES, n_threads)
    return np.asarray(cosines.mean(axis=1))


def least_familiarity(features: NDArray[Any], *, n_threads: int = 1) -> float:
    """Return the familiarity below which an image is of an unseen kind.

    It is what all but one in twenty of the known images reach among the others.
    """
    sample = features[:: -(-len(features) // _SAMPLE_SIZE)]
    # The nearest of all is the image itself.
    cosines = _nearest_cosines(features, sample, _N_LOOK_ALIKES + 1, n_threads)[:, 1:]
    return float(np.quantile(cosines.mean(axis=1), _SHARE_UNFAMILIAR)) if cosines.size else 0.0


def _nearest_cosines(
    features: NDArray[Any], queries: NDArray[Any], q: int, n_threads: int
) -> NDArray[np.float32]:
    images, others = (unit_rows(np.asarray(rows, np.float32)) for rows in (features, queries))
    found = kernel_neighbors(
        images, [], min(q, len(images)), queries=(others, []), n_threads=n_threads
    )
    return found[0].values
