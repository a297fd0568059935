"""Data about every image as binary columns, which the page's scripts read as typed arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nouncut.report.script_data import image_columns, map_columns

if TYPE_CHECKING:
    from nouncut.runs.run import Run


def label_bytes(run: Run) -> bytes:
    """Return cluster and second choice (16 bits), confidences, outlier and by hand (8 bits)."""
    columns = [*image_columns(run).values(), run.groups.by_hand.astype(np.uint8)]
    return b"".join(column.tobytes() for column in columns)


def position_bytes(run: Run) -> bytes | None:
    """Return all x, then all y of the map (16 bits); None if the run has no map."""
    columns = map_columns(run).values()
    return b"".join(column.tobytes() for column in columns) if columns else None
