"""One call from a folder to named groups with a report."""

from __future__ import annotations
