"""Regularized Affinity Diffusion: one affinity from the graphs of several prompts."""

from nouncut.diffusion.ensemble import Ensemble, choose_solver, ensemble_graphs
from nouncut.diffusion.exact import ExactDiffusion, exact_diffusion, exact_diffusion_bytes
from nouncut.diffusion.spectral import SpectralDiffusion, diffused, spectral_diffusion
from nouncut.diffusion.weights import simplex_weights

__all__ = [
    "Ensemble",
    "ExactDiffusion",
    "SpectralDiffusion",
    "choose_solver",
    "diffused",
    "ensemble_graphs",
    "exact_diffusion",
    "exact_diffusion_bytes",
    "simplex_weights",
    "spectral_diffusion",
]
