"""Encoders: images and texts to vectors. One file per model family.

Importing this room loads no model and no deep-learning library.
"""

from nouncut.encoders._base import Encoder
from nouncut.encoders.checkpoints import ModelUnavailableError
from nouncut.encoders.choice import ChosenEncoder, KnownModel, list_models, load_encoder
from nouncut.encoders.precomputed import FeatureFileError, FeatureTable, read_features

__all__ = [
    "ChosenEncoder",
    "Encoder",
    "FeatureFileError",
    "FeatureTable",
    "KnownModel",
    "ModelUnavailableError",
    "list_models",
    "load_encoder",
    "read_features",
]
