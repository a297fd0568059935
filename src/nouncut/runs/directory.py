"""What lies where in a run directory."""

from __future__ import annotations

import os
import re
from pathlib import Path

FORMAT = 1
MANIFEST = "manifest.json"
REPORT = "report.html"
LOCK = "run.lock"
ARRAYS = "arrays"
ARRAY_SUFFIX = ".npy"
TABLE_SUFFIX = ".parquet"
# Ends the names of files that are written but not yet in their place. Leftovers are deleted, so it
# must be an ending that no file of the user's has.
NEW_SUFFIX = ".nouncut-new"

_ARRAY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def table_path(directory: Path, name: str) -> Path:
    """Return where a table lies.

    Parameters
    ----------
    directory : Path
        The run directory.
    name : str
        "assignments", "clusters" or "images".

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.runs.directory import table_path
    >>> table_path(Path("pets"), "clusters").as_posix()
    'pets/clusters.parquet'
    """
    return directory / f"{name}{TABLE_SUFFIX}"


def array_path(directory: Path, name: str) -> Path:
    """Return where an array lies.

    Parameters
    ----------
    directory : Path
        The run directory.
    name : str
        A letter, then letters, digits and underscores.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        If no array can have that name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.runs.directory import array_path
    >>> array_path(Path("pets"), "features").as_posix()
    'pets/arrays/features.npy'
    """
    if not _ARRAY_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of an array: use a letter, then letters, digits and "
            "underscores."
        )
    return directory / ARRAYS / f"{name}{ARRAY_SUFFIX}"


def foreign_names(directory: Path) -> set[str]:
    """Return what a directory without a manifest holds besides leftovers of a killed writer.

    Parameters
    ----------
    directory : Path
        An existing directory.

    Returns
    -------
    set of str
        Names; empty where a run can be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.runs.directory import foreign_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("run.lock", "images.parquet.nouncut-new", "thesis.doc"):
    ...         Path(folder, name).touch()
    ...     foreign_names(Path(folder))
    {'thesis.doc'}
    """
    names = {name for name in os.listdir(directory) if not name.endswith(NEW_SUFFIX)}
    arrays = directory / ARRAYS
    if arrays.is_dir() and all(name.endswith(NEW_SUFFIX) for name in os.listdir(arrays)):
        names.discard(ARRAYS)
    return names - {LOCK}
