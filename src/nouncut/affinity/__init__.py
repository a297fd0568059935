"""From features to graphs: the neural tangent kernel, its nearest neighbours, symmetric graphs."""

from nouncut.affinity.candidates import candidate_pairs, noun_factors
from nouncut.affinity.familiarity import familiarity, least_familiarity
from nouncut.affinity.graphs import (
    even_mean,
    isolated_images,
    mean_graph,
    neighbor_graph,
    normalize_graph,
    normalize_rows,
    spread_graph,
    stray_images,
    symmetrize_graph,
)
from nouncut.affinity.kernels import noun_probabilities, ntk_kernel, unit_rows
from nouncut.affinity.neighbors import kernel_neighbors
from nouncut.affinity.search import (
    KernelSearch,
    can_compare_all,
    query_neighbors,
    search_neighbors,
)
from nouncut.affinity.temperature import choose_tau, relative_perplexity

__all__ = [
    "KernelSearch",
    "can_compare_all",
    "candidate_pairs",
    "choose_tau",
    "even_mean",
    "familiarity",
    "isolated_images",
    "kernel_neighbors",
    "least_familiarity",
    "mean_graph",
    "neighbor_graph",
    "normalize_graph",
    "normalize_rows",
    "noun_factors",
    "noun_probabilities",
    "ntk_kernel",
    "query_neighbors",
    "relative_perplexity",
    "search_neighbors",
    "spread_graph",
    "stray_images",
    "symmetrize_graph",
    "unit_rows",
]
