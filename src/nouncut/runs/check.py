"""Check all files of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nouncut.compute.files import AnyPath
from nouncut.errors import InputError
from nouncut.runs.checksums import forget_checksums
from nouncut.runs.directory import FEATURE_PARTS, SAMPLE
from nouncut.runs.edit_log import read_log
from nouncut.runs.run import open_run, read_finished, run_directory
from nouncut.runs.run_files import RunFiles
from nouncut.runs.tables import SCHEMAS


@dataclass(frozen=True)
class RunCheck:
    """What is wrong with a run.

    Parameters
    ----------
    directory : Path
        The run directory.
    n_files : int
        Number of files that were read.
    has_checksums : bool
        Whether the files could be compared with checksums; those of version 0.1.0 have none.
    problems : list of str
        One sentence per damaged file.
    """

    directory: Path
    n_files: int
    has_checksums: bool
    problems: list[str]


def check_run(directory: AnyPath) -> RunCheck:
    """Read all files of a run, and compare them with their checksums and with each other.

    Parameters
    ----------
    directory : path
        What `nouncut.open_run` takes.

    Returns
    -------
    RunCheck
        The number of files that were read, and what is wrong with them.

    Raises
    ------
    InputError
        If there is no run, if it is unfinished, or if its manifest is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nouncut import cluster_images
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> from nouncut.runs.check import check_run
    >>> data = make_clip_like(n_images=60, n_clusters=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "clip.npy"), data.features)
    ...     run = cluster_images(Path(folder, "clip.npy"), 3, output=Path(folder, "run"))
    ...     sound = check_run(run.directory)
    ...     Path(folder, "run/arrays/features.npy").write_bytes(b"...")
    ...     broken = check_run(run.directory)
    3
    >>> sound.problems, len(broken.problems)
    ([], 1)
    """
    place = run_directory(directory)
    # A file that was sound a minute ago may not be any more.
    forget_checksums()
    manifest = read_finished(place)
    files = RunFiles(place, manifest)
    reads: list[Callable[[], Any]] = [partial(read_log, place, manifest)]
    reads += [partial(files.check_table, name) for name in SCHEMAS]
    reads += [partial(files.check_array, name) for name in files.array_names]
    reads += [partial(files.check_features, name) for name in FEATURE_PARTS]
    problems = [problem for read in reads if (problem := _problem(read))]
    # Files that are sound alone may not fit together.
    if not problems and (problem := _problem(lambda: open_run(place).groups)):
        problems.append(problem)
    n_files = 1 + len(reads) - len(FEATURE_PARTS)
    if manifest.get("sample"):
        sample = check_run(place / SAMPLE)
        problems, n_files = problems + sample.problems, n_files + sample.n_files
    return RunCheck(place, n_files, files.has_checksums, problems)


def _problem(read: Callable[[], Any]) -> str | None:
    try:
        read()
    except InputError as error:
        return str(error)
    return None
