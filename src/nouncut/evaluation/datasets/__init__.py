"""Data sets: the sixteen of the paper from their official files, and any folder per class.

A loader only finds files and labels; images are opened when a model asks for them.
"""

from nouncut.evaluation.datasets._base import (
    CentreCrop,
    Dataset,
    DatasetFilesError,
    FileImages,
    ImageSource,
    PixelImages,
)
from nouncut.evaluation.datasets.folders import load_folders
from nouncut.evaluation.datasets.registry import KNOWN, KnownDataset, load_dataset

__all__ = [
    "KNOWN",
    "CentreCrop",
    "Dataset",
    "DatasetFilesError",
    "FileImages",
    "ImageSource",
    "KnownDataset",
    "PixelImages",
    "load_dataset",
    "load_folders",
]
