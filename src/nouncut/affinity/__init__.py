"""From features to graphs: the neural tangent kernel, its nearest neighbours, symmetric graphs."""

from nouncut.affinity.candidates import candidate_pairs, noun_factors
from nouncut.affinity.copies import find_originals, match_rows
from nouncut.affinity.familiarity import familiarity, least_familiarity
from nouncut.affinity.graphs import (
    add_copies,
    choose_neighbors,
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
from nouncut.affinity.kernels import looks_only, noun_probabilities, ntk_kernel, unit_rows
from nouncut.affinity.neighbors import Neighbors, kernel_neighbors
from nouncut.affinity.search import (
    KernelSearch,
    can_compare_all,
    query_neighbors,
    search_neighbors,
)
from nouncut.affinity.temperature import choose_tau, relative_perplexity

__all__ = [
    "KernelSearch",
    "Neighbors",
    "add_copies",
    "can_compare_all",
    "candidate_pairs",
    "choose_neighbors",
    "choose_tau",
    "even_mean",
    "familiarity",
    "find_originals",
    "isolated_images",
    "kernel_neighbors",
    "least_familiarity",
    "looks_only",
    "match_rows",
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
