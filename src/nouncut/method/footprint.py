"""An estimate of the memory that a fit needs."""

from __future__ import annotations

from typing import NamedTuple

from nouncut.method.candidates import RANK, SAMPLE_SIZE
from nouncut.method.search import can_compare_all

_HALF, _SINGLE, _DOUBLE, _INDEX = 2, 4, 8, 4
# The input, its unit rows, and the rows in another order.
_COPIES_OF_FEATURES = 3
# Numbers per image and candidate: pair, index, products.
_PER_CANDIDATE, _CANDIDATES_PER_NEIGHBOR = 8, 3
# The probabilities of the sampled images exist three times in single and once in double precision;
# there are two more copies of the noun features.
_COPIES_OF_NOUNS = 2
# Edges per chosen neighbour, in one graph and in the union of all graphs.
_EDGES, _ALL_EDGES = 1.7, 2.5
# A graph exists as it was found, normalised, and in the order of the solver.
_COPIES_OF_GRAPHS = 3
# Blocks of eigenvectors and their images, with more vectors than clusters.
_BLOCKS, _SPARE_SHARE, _SPARE_LEAST = 10, 1.1, 16


class Footprint(NamedTuple):
    """Bytes that a fit needs at most, by stage; `base` is held throughout."""

    base: int
    search: int
    probabilities: int
    cut: int

    @property
    def most(self) -> int:
        """The peak with all noun probabilities in memory."""
        return self.base + max(self.search + self.probabilities, self.cut)

    @property
    def least(self) -> int:
        """The peak with noun probabilities in the smallest blocks."""
        return self.base + max(self.search, self.cut)


def fit_footprint(
    n_images: int,
    n_features: int,
    n_clusters: int,
    *,
    n_nouns: int = 0,
    n_prompts: int = 1,
    n_neighbors: int = 30,
) -> Footprint:
    """Estimate the memory of `NTKSpectralClustering.fit`.

    Parameters
    ----------
    n_images, n_features : int
        Shape of the image features.
    n_clusters : int
        Number of clusters.
    n_nouns, n_prompts : int
        Number of nouns, and of prompts around them.
    n_neighbors : int, default=30
        Neighbours that every image keeps.

    Returns
    -------
    Footprint
        Bytes: close for large fits, too many for small ones. `most` is the peak, `least` the peak
        with the noun probabilities in small blocks (see `max_memory`).

    Examples
    --------
    >>> from nouncut.method.footprint import fit_footprint
    >>> needed = fit_footprint(50_000, 512, 1000, n_nouns=10_000, n_prompts=7)
    >>> f"{needed.most / 1e9:.0f} GB"
    '3 GB'
    """
    n_graphs = max(1, n_prompts)
    candidates = _CANDIDATES_PER_NEIGHBOR * n_neighbors
    per_image = candidates * _PER_CANDIDATE + RANK + 2 * n_graphs * n_neighbors
    per_noun = SAMPLE_SIZE * (3 * _SINGLE + _DOUBLE) + _COPIES_OF_NOUNS * n_features * _SINGLE
    edges = n_neighbors * n_graphs * _EDGES * _COPIES_OF_GRAPHS * (_DOUBLE + _INDEX)
    weights = n_neighbors * n_graphs * _ALL_EDGES * _DOUBLE
    brute_force = can_compare_all(n_images, n_features + n_nouns * n_prompts)
    vectors = max(_SPARE_SHARE * n_clusters, n_clusters + _SPARE_LEAST)
    return Footprint(
        base=_COPIES_OF_FEATURES * _SINGLE * n_images * n_features,
        search=n_images * per_image * _SINGLE + n_nouns * per_noun,
        probabilities=n_images * n_nouns * (_SINGLE * n_prompts if brute_force else _HALF),
        cut=int(n_images * (edges + weights + _BLOCKS * vectors * _SINGLE)),
    )


def memory_for_probabilities(needed: Footprint, max_memory: float) -> float:
    """Return the bytes that a limit in gigabytes leaves for noun probabilities."""
    limit = max_memory * 1e9
    if needed.least > limit:
        raise MemoryError(
            f"This fit needs about {needed.least / 1e9:.2g} GB in the smallest blocks, more than "
            f"`max_memory={max_memory:g}`: allow more, or use fewer clusters, prompts or "
            "neighbours."
        )
    return limit - needed.base - needed.search
