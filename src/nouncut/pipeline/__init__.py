"""The whole way from a folder to a run: the rooms in their order.

Nothing here computes; every step is a function of another room.
"""

from nouncut.pipeline.cluster import cluster_images
from nouncut.pipeline.collection import Collection, open_sources, read_collection
from nouncut.pipeline.estimate import Estimate
from nouncut.pipeline.predict import Prediction, predict_images
from nouncut.pipeline.settings import VISIBLE_LEXICONS, Settings

__all__ = [
    "VISIBLE_LEXICONS",
    "Collection",
    "Estimate",
    "Prediction",
    "Settings",
    "cluster_images",
    "open_sources",
    "predict_images",
    "read_collection",
]
