"""A map of all images: neighbours near each other, clusters apart.

Nothing here knows about files, nouns or the page that shows the map.
"""

from nouncut.layout.images import layout_images

__all__ = ["layout_images"]
