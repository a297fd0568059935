"""From a graph to labels: leading eigenvectors, how many clusters, which one, how surely."""

from nouncut.spectral.counting import MAX_CLUSTERS, ClusterCount, count_clusters
from nouncut.spectral.eigen import Eigenpairs, spectrum_floor, top_eigenpairs
from nouncut.spectral.extension import cluster_centers, extend_embedding, nearest_center
from nouncut.spectral.labels import assign_labels, cluster_sums, fill_clusters, order_by_size
from nouncut.spectral.membership import (
    Membership,
    cluster_membership,
    membership_probabilities,
    membership_temperature,
    outliers,
)

__all__ = [
    "MAX_CLUSTERS",
    "ClusterCount",
    "Eigenpairs",
    "Membership",
    "assign_labels",
    "cluster_centers",
    "cluster_membership",
    "cluster_sums",
    "count_clusters",
    "extend_embedding",
    "fill_clusters",
    "membership_probabilities",
    "membership_temperature",
    "nearest_center",
    "order_by_size",
    "outliers",
    "spectrum_floor",
    "top_eigenpairs",
]
