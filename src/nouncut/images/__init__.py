"""Image files: finding them, opening them, telling them apart by content.

Nothing here knows about models or vectors.
"""

from nouncut.images.ahead import load_ahead
from nouncut.images.decode import MAX_PIXELS, open_image
from nouncut.images.errors import ImageError, NoImagesError, printable_path
from nouncut.images.formats import image_suffixes
from nouncut.images.hashing import content_hash
from nouncut.images.scan import ImageScan, SkippedFile, scan_images

__all__ = [
    "MAX_PIXELS",
    "ImageError",
    "ImageScan",
    "NoImagesError",
    "SkippedFile",
    "content_hash",
    "image_suffixes",
    "load_ahead",
    "open_image",
    "printable_path",
    "scan_images",
]
