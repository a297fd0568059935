"""The methods that the paper compares with, on features, and ours under the same protocol."""

from nouncut.baselines._base import Method, Problem
from nouncut.baselines.gradnorm import GradNorm
from nouncut.baselines.kmeans import SphericalKMeans
from nouncut.baselines.methods import METHODS
from nouncut.baselines.scan import SCAN
from nouncut.baselines.sic import SIC
from nouncut.baselines.spectral import KERNEL_NAMES, KernelSpectralClustering, kernel_graph
from nouncut.baselines.tac import TAC, text_counterparts
from nouncut.baselines.tac_heads import TACHeads
from nouncut.baselines.zero_shot import ZeroShot

__all__ = [
    "KERNEL_NAMES",
    "METHODS",
    "SCAN",
    "SIC",
    "TAC",
    "GradNorm",
    "KernelSpectralClustering",
    "Method",
    "Problem",
    "SphericalKMeans",
    "TACHeads",
    "ZeroShot",
    "kernel_graph",
    "text_counterparts",
]
