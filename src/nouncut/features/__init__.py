"""The feature store: vectors on disk, found by content, computed once.

Nothing here knows what the vectors mean.
"""

from nouncut.features.errors import StoreError
from nouncut.features.housekeeping import SpaceInfo
from nouncut.features.keys import text_key
from nouncut.features.place import default_root
from nouncut.features.store import FeatureStore

__all__ = ["FeatureStore", "SpaceInfo", "StoreError", "default_root", "text_key"]
