"""A run that grows: new images join its groups, images that are gone leave them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nouncut.errors import InputError, ParameterError, printable_path
from nouncut.images.find import ImageScan
from nouncut.runs.changes import Changes, count_files, read_changes
from nouncut.runs.cluster import make_run
from nouncut.runs.file_changes import FileChanges, is_there, match_files, scan_again
from nouncut.runs.image_set import ImageSet, hash_images
from nouncut.runs.job import Job, recorded_warnings
from nouncut.runs.manifest import read_manifest
from nouncut.runs.run import Run, open_run, run_identities
from nouncut.runs.settings import Settings
from nouncut.runs.sources import as_paths
from nouncut.runs.tables import path_texts
from nouncut.runs.writer import RunContents, RunWriter


@dataclass(frozen=True)
class UpdateOptions:
    """What an update may do."""

    new_groups: bool = False
    allow_missing: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class Update:
    """A run after an update, and what changed.

    Parameters
    ----------
    run : Run
        The run; after a dry run it is as it was.
    changes : Changes
        What changed, or would change; `print` shows it.
    """

    run: Run
    changes: Changes


@dataclass(frozen=True)
class Found:
    """The files of a run as they are now."""

    sources: list[str]
    scan: ImageScan
    images: ImageSet
    changes: FileChanges


def place_new(directory: Path, more: Sequence[str], job: Job, options: UpdateOptions) -> Update:
    """Place new images in the groups of the run in a directory."""
    run = _open_finished(directory)
    if options.dry_run:
        return Update(run, _grow(run, more, job, options)[0])
    with RunWriter(directory) as writer:
        run = open_run(directory)
        changes, contents = _grow(run, more, job, options)
        return Update(run if contents is None else writer.finish(contents), changes)


def cluster_again(directory: Path, more: Sequence[str], job: Job, options: UpdateOptions) -> Update:
    """Cluster all images of the run in a directory again, from its groups on."""
    run = _open_finished(directory)
    sources = all_sources(run, more)
    if run.has_images:
        scan_again(run, sources, allow_missing=options.allow_missing)
    if options.allow_missing:
        sources = [source for source in sources if is_there(source)]
    job = replace(job, settings=run_settings(run))
    if not options.dry_run:
        new = make_run(sources, directory, job)
        return Update(new, _changes_since(run, new))
    with TemporaryDirectory() as folder:
        place = Path(folder, "run")
        shutil.copytree(directory, place)
        return Update(run, _changes_since(run, make_run(sources, place, job)))


def _open_finished(directory: Path) -> Run:
    """Open a run; if an update was killed while it renamed files, rename the rest first."""
    if read_manifest(directory)["status"] == "running":
        with RunWriter(directory):
            pass
    run = open_run(directory)
    if run.is_large:
        raise InputError(
            f"The run in {printable_path(directory)} is too large to be updated on one machine. "
            "Cluster its sources again on a cluster; with a `cache`, only new files are encoded."
        )
    return run


def _changes_since(run: Run, new: Run) -> Changes:
    is_new = new.manifest.get("id") != run.manifest.get("id")
    return (read_changes(new.manifest) if is_new else None) or Changes()


def _grow(
    run: Run, more: Sequence[str], job: Job, options: UpdateOptions
) -> tuple[Changes, RunContents | None]:
    found = look_again(run, more, job, options)
    if found.changes.is_nothing:
        return Changes(), None
    return grow_run(run, found, job, options)


def look_again(run: Run, more: Sequence[str], job: Job, options: UpdateOptions) -> Found:
    """Compare the sources of a run, and more of them, with its images."""
    if not run.has_images:
        raise InputError(
            f"{printable_path(run.directory)} was made from a file of features, not from images. "
            "Cluster the grown file with the same `output`: groups that match keep their names."
        )
    sources = all_sources(run, more)
    scan = scan_again(run, sources, allow_missing=options.allow_missing)
    with job.timed("reading files"):
        images = hash_images(scan, job.store, progress=job.progress, n_jobs=job.n_jobs)
    paths = run.images["path"].slice(0, len(run.assignments)).to_pylist()
    changes = match_files(run_identities(run), paths, images.hashes or (), path_texts(images.paths))
    return Found(sources, scan, images, changes)


def all_sources(run: Run, more: Sequence[str]) -> list[str]:
    """Return the sources of a run, and those of `more` that are not among or below them."""
    sources = [str(source) for source in run.manifest.get("source") or ()]
    if not sources and not more:
        raise InputError(
            f"{printable_path(run.directory)} does not say where its images are. Name their folder."
        )
    for path in as_paths(more):
        if not any(path == known or path.startswith(known + os.sep) for known in sources):
            sources.append(path)
    return sources


def run_settings(run: Run) -> Settings:
    """Return the settings that a run was made with."""
    try:
        asked: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in run.manifest["settings"].items()
        }
        return Settings(**asked)
    except (KeyError, TypeError, ParameterError) as error:
        raise InputError(
            f"The settings of {printable_path(run.directory)} are not known to this version of "
            "nouncut. Cluster the images again."
        ) from error


def grow_run(
    run: Run, found: Found, job: Job, options: UpdateOptions
) -> tuple[Changes, RunContents | None]:
    """Place new images in the groups of a run; return what changed, and the new contents.

    There are none if all new files are broken and nothing else has changed.
    """
    # SciPy and scikit-learn take a second to import.
    from nouncut.runs.growing import grown_contents, read_new
    from nouncut.runs.predict import model_settings

    job = replace(job, settings=model_settings(run))
    with recorded_warnings() as messages:
        new = read_new(run, found.scan, _part(found), job)
        found = _without_broken(found, None if new is None else new.images)
        new = new or None  # all of them may be broken
        changes = count_files(found.changes)
        if not changes:
            return changes, None
        changes, contents = grown_contents(run, found, new, job, changes, options.new_groups)
        known = run.manifest.get("warnings") or []
        digest = run.manifest.get("digest")
        if found.sources != run.manifest.get("source"):
            digest = run_settings(run).digest(found.sources)
        about: dict[str, Any] = {
            "source": path_texts(found.sources),
            "digest": digest,
            "seconds": job.seconds,
            "warnings": list(dict.fromkeys([*known, *messages()])),
            "changes": changes.to_json(),
        }
        contents.manifest.update(about)
    return changes, contents


def _part(found: Found) -> ImageSet:
    """Return the new files."""
    paths, hashes = found.images.paths, found.images.hashes or ()
    new = found.changes.new.tolist()
    return ImageSet(tuple(paths[i] for i in new), tuple(hashes[i] for i in new), ())


def _without_broken(found: Found, opened: ImageSet | None) -> Found:
    """Return the files without new ones that could not be opened."""
    if opened is None or len(opened.paths) == len(found.changes.new):
        return found
    paths, there, new = found.images.paths, set(opened.paths), found.changes.new
    broken = new[[paths[number] not in there for number in new.tolist()]]
    images = replace(found.images, skipped=(*found.images.skipped, *opened.skipped))
    return replace(found, images=images, changes=found.changes.without(broken))
