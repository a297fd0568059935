"""The values that options of the method can have; light to import."""

from typing import Literal

Affinity = Literal["ntk", "precomputed"]
LamScale = Literal["absolute", "per_image"]
Symmetry = Literal["union", "mutual"]
Combination = Literal["weighted", "diffusion", "average", "prompt_mean"]
Solver = Literal["auto", "exact", "spectral"]
Rounding = Literal["discretize", "cluster_qr", "kmeans"]
Assignment = Literal["merge", Rounding]
