"""The key of a text."""

from nouncut.store.store import text_key as text_key
