"""The run directory: what a clustering left on disk, written whole or not at all.

Nothing here knows how the labels were made.
"""

from nouncut.runs.errors import RunError
from nouncut.runs.names import read_names, write_names
from nouncut.runs.place import choose_output
from nouncut.runs.run import Run, open_run
from nouncut.runs.tables import (
    ASSIGNMENTS_SCHEMA,
    CLUSTERS_SCHEMA,
    IMAGES_SCHEMA,
    images_table,
    unicode_text,
)
from nouncut.runs.writer import RunContents, RunWriter

__all__ = [
    "ASSIGNMENTS_SCHEMA",
    "CLUSTERS_SCHEMA",
    "IMAGES_SCHEMA",
    "Run",
    "RunContents",
    "RunError",
    "RunWriter",
    "choose_output",
    "images_table",
    "open_run",
    "read_names",
    "unicode_text",
    "write_names",
]
