"""One graph and its leading eigenpairs from the graphs of several prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nouncut.compute.eigen import Eigenpairs, guard_vectors, top_eigenpairs
from nouncut.compute.memory import available_memory
from nouncut.compute.patterns import cache_order, reorder
from nouncut.compute.progress import Progress
from nouncut.method.cut import RESIDUAL, Cut, cut_mean, dense_cut, graph_eigenvalues
from nouncut.method.diffusion import spectral_diffusion
from nouncut.method.exact_diffusion import exact_diffusion, exact_diffusion_bytes
from nouncut.method.graphs import mean_graph, normalize_graph

Solver = Literal["auto", "exact", "spectral"]
# Exact diffusion takes about a second here, and its time grows with the cube of the size.
_EXACT_SIZE = 500


class Ensemble(NamedTuple):
    """The graphs of all prompts in one."""

    graph: csr_array
    mean_degrees: NDArray[np.float64] | None
    eigenpairs: Eigenpairs
    prompt_weights: NDArray[np.float64]
    losses: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    objective: NDArray[np.float64]
    weight_steps: NDArray[np.float64]
    solver: str | None


def choose_solver(solver: Solver, n_images: int, n_prompts: int) -> str:
    """Settle "auto": exact diffusion where it is quick and fits in memory."""
    if solver not in get_args(Solver):
        raise ValueError(f"solver must be one of {get_args(Solver)}, not {solver!r}.")
    if solver != "auto":
        return solver
    free = available_memory()
    fits = free is None or exact_diffusion_bytes(n_images, n_prompts) <= free
    return "exact" if n_images <= _EXACT_SIZE and fits else "spectral"


def ensemble_graphs(
    graphs: Sequence[csr_array],
    n_clusters: int,
    *,
    solver: Solver = "auto",
    cut: Cut = "mean",
    mu: float = 0.1,
    lam: float = 10.0,
    max_iter: int = 5,
    max_inner_iter: int = 8,
    tol: float = 1e-4,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> Ensemble:
    """Ensemble normalised graphs by diffusion and return what is to be cut."""
    if len(graphs) == 1:
        return _cut_one(graphs[0], n_clusters, cut, random_state, n_threads, progress)
    if choose_solver(solver, graphs[0].shape[0], len(graphs)) == "spectral":
        found = spectral_diffusion(
            graphs,
            n_clusters,
            cut=cut,
            mu=mu,
            lam=lam,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            n_threads=n_threads,
            progress=progress,
        )
        return Ensemble(
            found.graph,
            found.mean_degrees,
            found.eigenpairs,
            found.prompt_weights,
            found.losses,
            found.spectrum,
            found.objective,
            found.weight_steps,
            "spectral",
        )
    exact = exact_diffusion(
        graphs,
        mu=mu,
        lam=lam,
        max_iter=max_iter,
        max_inner_iter=max_inner_iter,
        tol=tol,
        n_threads=n_threads,
    )
    graph = mean_graph(graphs, exact.prompt_weights)
    if cut == "mean":
        graph, degrees, spectrum, pairs = cut_mean(graph, n_clusters, None, random_state, n_threads)
    else:
        vectors = dense_cut(exact.affinity, n_clusters)
        pairs = Eigenpairs(graph_eigenvalues(graph, vectors, n_threads), vectors)
        degrees, n_spare = None, guard_vectors(n_clusters)
        spectrum = top_eigenpairs(
            graph, n_clusters, n_spare=n_spare, tol=RESIDUAL, random_state=0
        ).values
    return Ensemble(
        graph,
        degrees,
        pairs,
        exact.prompt_weights,
        exact.losses,
        spectrum,
        exact.objective,
        exact.weight_steps,
        "exact",
    )


def _cut_one(
    graph: csr_array,
    n_clusters: int,
    cut: Cut,
    random_state: int | np.random.RandomState | None,
    n_threads: int,
    progress: Progress | None,
) -> Ensemble:
    """Cut a single graph: there is nothing to weigh, and the paper does not diffuse it."""
    order = cache_order(graph)
    back = np.argsort(order)
    ordered, degrees = reorder(graph, order), None
    if cut == "mean":
        ordered, degrees = normalize_graph(ordered)
        graph, degrees = reorder(ordered, back), degrees[back]
    values, vectors = top_eigenpairs(
        ordered,
        n_clusters,
        n_spare=guard_vectors(n_clusters),
        tol=RESIDUAL,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    pairs = Eigenpairs(values[:n_clusters], vectors[back, :n_clusters])
    weights, nothing, no_steps = np.ones(1), np.empty(0), np.empty((0, 1))
    return Ensemble(graph, degrees, pairs, weights, nothing, values, nothing, no_steps, None)
