"""Sort unlabelled images into meaningful groups: spectral clustering anchored by nouns."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nouncut.method.estimator import NTKSpectralClustering
    from nouncut.method.footprint import fit_footprint
    from nouncut.runs.encode import EncodedImages, encode_images
    from nouncut.runs.encode_texts import encode_nouns
    from nouncut.runs.predict import predict_images
    from nouncut.runs.run import Run, open_run
    from nouncut.workflow import cluster_images, update_run

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
    "update_run",
]
__version__ = "0.2.0"

_MODULES = {
    "EncodedImages": "runs.encode",
    "NTKSpectralClustering": "method.estimator",
    "Run": "runs.run",
    "cluster_images": "workflow",
    "encode_images": "runs.encode",
    "encode_nouns": "runs.encode_texts",
    "fit_footprint": "method.footprint",
    "open_run": "runs.run",
    "predict_images": "runs.predict",
    "update_run": "workflow",
}


def __getattr__(name: str) -> Any:
    """Import a module only when one of its names is used, so that the command starts fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'nouncut' has no attribute {name!r}")
    return getattr(import_module(f"nouncut.{_MODULES[name]}"), name)
