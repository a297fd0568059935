"""One cut from the graphs of several prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np
from scipy.sparse import csr_array

from nouncut.compute.checks import check_choice
from nouncut.compute.memory import available_memory
from nouncut.compute.progress import Progress
from nouncut.compute.sparse import cache_order, reorder
from nouncut.method.choices import Solver
from nouncut.method.cut import Cut, CutKind, cut_affinity, cut_graph
from nouncut.method.diffusion import PUBLISHED, DiffusionOptions, PromptWeights
from nouncut.method.exact_diffusion import exact_diffusion, exact_diffusion_bytes
from nouncut.method.graphs import mean_graph
from nouncut.method.spectral_diffusion import spectral_diffusion

# Exact diffusion takes about a second at this size; its time grows with the cube of the size.
_EXACT_SIZE = 500


class Ensemble(NamedTuple):
    """The cut of all prompts' graphs, their weights, and the solver; None for a single graph."""

    cut: Cut
    prompts: PromptWeights
    solver: str | None


def ensemble_graphs(
    graphs: Sequence[csr_array],
    n_clusters: int,
    options: DiffusionOptions = PUBLISHED,
    *,
    solver: Solver = "auto",
    cut: CutKind = "mean",
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Ensemble:
    """Weigh normalised graphs by diffusion, and cut their mean or the diffused affinity."""
    if len(graphs) == 1:
        # There is nothing to weigh, and the paper does not diffuse a single graph.
        order = cache_order(graphs[0])
        found = cut_graph(
            reorder(graphs[0], order),
            n_clusters,
            normalize=cut == "mean",
            random_state=random_state,
            n_threads=n_threads,
            progress=progress,
        )
        return Ensemble(found.in_order(np.argsort(order)), PromptWeights.of_one(), None)
    if choose_solver(solver, graphs[0].shape[0], len(graphs)) == "spectral":
        found, prompts = spectral_diffusion(
            graphs,
            n_clusters,
            options,
            cut=cut,
            random_state=random_state,
            n_threads=n_threads,
            progress=progress,
        )
        return Ensemble(found, prompts, "spectral")
    affinity, prompts = exact_diffusion(graphs, options, n_threads)
    mean = mean_graph(graphs, prompts.weights)
    if cut == "mean":
        found = cut_graph(mean, n_clusters, random_state=random_state, n_threads=n_threads)
    else:
        found = cut_affinity(affinity, mean, n_clusters, n_threads)
    return Ensemble(found, prompts, "exact")


def choose_solver(solver: Solver, n_images: int, n_prompts: int) -> str:
    """Turn "auto" into "exact" if that takes a second and fits in memory, else "spectral"."""
    check_choice("solver", solver, get_args(Solver))
    if solver != "auto":
        return solver
    free = available_memory()
    fits = free is None or exact_diffusion_bytes(n_images, n_prompts) <= free
    return "exact" if n_images <= _EXACT_SIZE and fits else "spectral"
