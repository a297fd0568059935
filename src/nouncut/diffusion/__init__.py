"""Regularized Affinity Diffusion: one affinity from the graphs of several prompts."""

from nouncut.diffusion.cut import dense_cut, diffused, graph_eigenvalues, implied_cut
from nouncut.diffusion.ensemble import Ensemble, choose_solver, ensemble_graphs
from nouncut.diffusion.exact import ExactDiffusion, exact_diffusion, exact_diffusion_bytes
from nouncut.diffusion.spectral import SpectralDiffusion, spectral_diffusion
from nouncut.diffusion.weights import simplex_weights

__all__ = [
    "Ensemble",
    "ExactDiffusion",
    "SpectralDiffusion",
    "choose_solver",
    "dense_cut",
    "diffused",
    "ensemble_graphs",
    "exact_diffusion",
    "exact_diffusion_bytes",
    "graph_eigenvalues",
    "implied_cut",
    "simplex_weights",
    "spectral_diffusion",
]
