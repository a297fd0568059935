"""From a graph to labels: leading eigenvectors, label assignment, new images."""

from nouncut.spectral.eigen import Eigenpairs, spectrum_floor, top_eigenpairs
from nouncut.spectral.extension import cluster_centers, extend_embedding, nearest_center
from nouncut.spectral.labels import assign_labels, cluster_sums, order_by_size

__all__ = [
    "Eigenpairs",
    "assign_labels",
    "cluster_centers",
    "cluster_sums",
    "extend_embedding",
    "nearest_center",
    "order_by_size",
    "spectrum_floor",
    "top_eigenpairs",
]
