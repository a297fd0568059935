"""Scores against known labels, and made data to score on."""

from nouncut.evaluation.scores import ClusteringScores, clustering_scores
from nouncut.evaluation.synthetic import ClipLikeData, make_clip_like

__all__ = ["ClipLikeData", "ClusteringScores", "clustering_scores", "make_clip_like"]
