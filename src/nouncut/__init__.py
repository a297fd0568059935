"""Sort unlabelled images into meaningful groups: spectral clustering anchored by nouns."""

from typing import TYPE_CHECKING, Any

from nouncut.estimator import NTKSpectralClustering

if TYPE_CHECKING:
    from nouncut.extraction import EncodedImages, encode_images, encode_nouns

__all__ = [
    "EncodedImages",
    "NTKSpectralClustering",
    "__version__",
    "encode_images",
    "encode_nouns",
]
__version__ = "0.1.0"

_NEEDS_IMAGES_EXTRA = ("EncodedImages", "encode_images", "encode_nouns")


def __getattr__(name: str) -> Any:
    """Load what works on image files only when it is asked for: the estimator needs none of it."""
    if name not in _NEEDS_IMAGES_EXTRA:
        raise AttributeError(f"module 'nouncut' has no attribute {name!r}")
    try:
        from nouncut import extraction
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'nouncut.{name} needs {error.name}: install it with pip install "nouncut[images]".'
        ) from error
    return getattr(extraction, name)
