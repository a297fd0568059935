"""XMP sidecars: the cluster as a keyword, for photo managers.

digiKam and darktable look for a sidecar under the whole file name, ``IMG.jpg.xmp``, as do others
such as Immich. Lightroom looks for ``IMG.xmp``, which ``IMG.CR2`` and ``IMG.jpg`` share, and only
for raw files.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from nouncut.compute.files import atomic_file
from nouncut.errors import (
    ImageError,
    InputError,
    ParameterError,
    describe_error,
    printable_path,
)
from nouncut.exports.destination import make_export_folder, make_folders, read_ordinary_file
from nouncut.exports.result import ExportResult
from nouncut.exports.sidecar import Keywords, keywords_of, merged_sidecar, new_sidecar
from nouncut.images.formats import RAW_SUFFIXES
from nouncut.runs.originals import check_original

if TYPE_CHECKING:
    from nouncut.exports.part import Part
    from nouncut.runs.run import Run

Program = Literal["digikam", "darktable", "lightroom"]

# Sidecars with the history of hundreds of edits have about 1 MB.
_MAX_BYTES = 16_000_000
_EXIFTOOL = (
    "exiftool -tagsfromfile %d%f.xmp -XMP-dc:subject -XMP-lr:hierarchicalSubject --ext xmp -r"
)


@dataclass(frozen=True)
class Sidecar:
    """An image, its cluster (-1 if it is set aside), and the path of its sidecar."""

    image: Path
    cluster: int
    target: Path


def plan_sidecars(
    run: Run, destination: Path, *, program: Program = "digikam", beside: bool = False
) -> list[Sidecar]:
    """Return the sidecar of every image: beside it, or in a mirror of its folder."""
    images, labels = run.paths(), run.labels.tolist()
    root = _common_folder(images)
    places = images if beside else [_inside(image, root) for image in images]
    folder = Path() if beside else destination
    named = [folder / _sidecar_path(place, program) for place in places]
    return [Sidecar(*one) for one in zip(images, labels, named, strict=True)]


def export_xmp(
    part: Part,
    destination: Path,
    *,
    program: Program = "digikam",
    beside: bool = False,
    nested: bool = False,
    preview: bool = False,
) -> ExportResult:
    """Add keywords to sidecars, or make them; what else is in a sidecar stays in it."""
    if program not in get_args(Program):
        names = ", ".join(get_args(Program))
        raise ParameterError(f"`program` must be one of {names}, not {program!r}.")
    run, problems = part.run, list[str]()
    every = plan_sidecars(run, destination, program=program, beside=beside)
    plan, n_shared = _without_shared(every, part, problems)
    folder = Path(_common_folder(run.paths()) or destination) if beside else destination
    hint = _hint(plan, destination, program, beside)
    if preview:
        files = [one.target for one in plan if one.cluster >= 0]
        return ExportResult(folder, len(files), n_shared, problems, hint, files, is_preview=True)
    if not beside:
        make_export_folder(destination)
    writer = _Writer(run, destination, beside, _keywords(run, program, nested))
    for one in plan:
        problem = writer.write(one)
        if problem:
            problems.append(problem)
    return ExportResult(
        folder,
        writer.n_written,
        writer.n_kept + n_shared,
        problems,
        hint,
        writer.files,
        writer.n_removed,
    )


def _keywords(run: Run, program: Program, nested: bool) -> dict[int, Keywords]:
    above = run.tree.paths() if nested else {}
    return {
        number: keywords_of(
            name,
            f"cluster {number}",
            above.get(number, (name,))[:-1],
            digikam=program != "lightroom",
        )
        for number, name in run.names_by_cluster.items()
    }


class _Writer:
    """Writes sidecars and counts them."""

    def __init__(
        self, run: Run, destination: Path, beside: bool, keywords: dict[int, Keywords]
    ) -> None:
        self._sources = run.manifest.get("source") or []
        self._beside, self._keywords = beside, keywords
        self._make_folder = cache(partial(make_folders, root=destination))
        self.files: list[Path] = []
        self.n_written = self.n_kept = self.n_removed = 0

    def write(self, one: Sidecar) -> str | None:
        """Write a sidecar, or return why not."""
        try:
            self._write(one)
        except ImageError as error:
            return str(error)
        except InputError as error:
            return f"{printable_path(one.target)}: left alone, since {error}"
        except OSError as error:
            return f"{printable_path(one.target)}: {describe_error(error)}"
        return None

    def _write(self, one: Sidecar) -> None:
        if self._beside:
            _check_there(one.image, self._sources)
            _check_other_name(one)
        elif one.cluster >= 0:
            self._make_folder(one.target.parent)
        keywords = self._keywords.get(one.cluster, {})
        if not os.path.lexists(one.target):
            if keywords:
                self._save(one, new_sidecar(keywords), replace=False)
            return
        before = read_ordinary_file(one.target, _MAX_BYTES)
        after = merged_sidecar(before, keywords)
        if after is None:
            one.target.unlink()
            self.n_removed += 1
        elif after == before:
            self.n_kept += one.cluster >= 0
        else:
            self._save(one, after, replace=True)

    def _save(self, one: Sidecar, content: bytes, *, replace: bool) -> None:
        with atomic_file(one.target, replace=replace, sync=replace) as file:
            file.write(content)
            if replace:
                shutil.copymode(one.target, file.name)
        self.files.append(one.target)
        self.n_written += one.cluster >= 0


def _sidecar_path(place: Path, program: Program) -> Path:
    name = os.path.splitext(place)[0] if program == "lightroom" else place
    return Path(f"{name}.xmp")


def _without_shared(
    every: list[Sidecar], part: Part, problems: list[str]
) -> tuple[list[Sidecar], int]:
    """Return the sidecars of a part, and the number of images that share one of their group.

    Of images that share a sidecar, the raw file has it, or the first image.
    """
    owners: dict[Path, Sidecar] = {}
    for one in every:
        owner = owners.setdefault(one.target, one)
        if _is_raw(one.image) and not _is_raw(owner.image):
            owners[one.target] = one
    plan, n_shared = [], 0
    for one in (every[row] for row in part.rows):
        owner = owners[one.target]
        if owner is one:
            plan.append(one)
        elif owner.cluster == one.cluster:
            n_shared += 1
        else:
            problems.append(
                f"{printable_path(one.image)}: left out, since it shares "
                f"{printable_path(one.target.name)} with {printable_path(owner.image.name)}, which "
                "is in another group"
            )
    return plan, n_shared


def _is_raw(image: Path) -> bool:
    return image.suffix.lower() in RAW_SUFFIXES


def _common_folder(images: list[Path]) -> str | None:
    # Unlike `Run.common_folder`, it keeps bytes that are not text, and resolves "..", which would
    # lead out of the mirror.
    try:
        return os.path.commonpath([os.path.dirname(_absolute(image)) for image in images])
    except ValueError:
        return None


def _absolute(image: Path) -> str:
    path = os.path.abspath(image)
    # POSIX keeps two slashes at the beginning, which mean one everywhere but on network drives of
    # some old systems, and share no folder with paths that begin with one.
    return f"/{path.lstrip('/')}" if os.sep == "/" else path


def _inside(image: Path, root: str | None) -> Path:
    """Return the path of an image in a mirror of its folder."""
    path = Path(_absolute(image))
    if root is None:
        drive = re.sub(r"\W+", "_", path.drive).strip("_")
        return Path(drive, *path.parts[1:])
    return path.relative_to(root)


def _check_there(image: Path, sources: list[str]) -> None:
    if not image.exists():
        raise FileNotFoundError(errno.ENOENT, "the image no longer exists")
    check_original(image, sources)


def _check_other_name(one: Sidecar) -> None:
    """Refuse to add IMG.jpg.xmp beside IMG.xmp, which programs would ignore from then on."""
    other = _sidecar_path(one.image, "lightroom")
    if other != one.target and os.path.lexists(other) and not os.path.lexists(one.target):
        raise InputError(
            f"{printable_path(other.name)} is there, which programs would then ignore; export for "
            "Lightroom to add keywords to it"
        )


def _hint(plan: list[Sidecar], destination: Path, program: Program, beside: bool) -> str:
    hints = []
    root = _common_folder([one.image for one in plan])
    if not beside and root is not None:
        source, target = printable_path(destination), printable_path(root)
        hints.append(f"To put them beside the images, copy what is in {source} into {target}.")
    n_others = sum(not _is_raw(one.image) for one in plan)
    if program == "lightroom" and n_others:
        hints.append(
            f"Lightroom reads sidecars of raw files only; {n_others:,} of {len(plan):,} images are "
            "none. Once the sidecars are beside them, ExifTool copies the keywords into images: "
            f"{_EXIFTOOL} {shlex.quote(printable_path(root or 'FOLDER'))}"
        )
    return "\n".join(hints)
