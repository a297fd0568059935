"""Sort unlabelled images into meaningful groups: spectral clustering anchored by nouns."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nouncut.estimator import NTKSpectralClustering
    from nouncut.extraction import EncodedImages, encode_images, encode_nouns
    from nouncut.footprint import fit_footprint
    from nouncut.pipeline import cluster_images, predict_images
    from nouncut.runs import Run, open_run

__all__ = [
    "EncodedImages",
    "NTKSpectralClustering",
    "Run",
    "__version__",
    "cluster_images",
    "encode_images",
    "encode_nouns",
    "fit_footprint",
    "open_run",
    "predict_images",
]
__version__ = "0.1.0"

_ROOMS = {
    "EncodedImages": "extraction",
    "NTKSpectralClustering": "estimator",
    "Run": "runs",
    "cluster_images": "pipeline",
    "encode_images": "extraction",
    "encode_nouns": "extraction",
    "fit_footprint": "footprint",
    "open_run": "runs",
    "predict_images": "pipeline",
}


def __getattr__(name: str) -> Any:
    """Load a room only when something of it is asked for: the command must answer at once."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'nouncut' has no attribute {name!r}")
    return getattr(import_module(f"nouncut.{_ROOMS[name]}"), name)
