"""XMP sidecars: the cluster as a keyword, for photo managers.

A sidecar is named after the whole file name, ``IMG.jpg.xmp``: so digiKam, darktable and Immich
look for it, and ``IMG.jpg`` and ``IMG.png`` do not share one. Lightroom reads sidecars of raw files
only, never of JPEG or PNG; there, ``exiftool -tagsfromfile IMG.jpg.xmp IMG.jpg`` brings the
keywords into the image itself.
"""

from __future__ import annotations

import errno
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from nouncut.errors import describe_error, printable_path
from nouncut.exports.result import ExportResult, require_pictures
from nouncut.exports.writing import make_folders, part_of, put

if TYPE_CHECKING:
    from nouncut.runs.run import Run

_KEYWORD = "nouncut"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SIDECAR = """\
<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="nouncut">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/">
   <dc:subject>
    <rdf:Bag>
     <rdf:li>{root}</rdf:li>
     <rdf:li>{name}</rdf:li>
    </rdf:Bag>
   </dc:subject>
   <lr:hierarchicalSubject>
    <rdf:Bag>
     <rdf:li>{root}|{name}</rdf:li>
    </rdf:Bag>
   </lr:hierarchicalSubject>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"""


def sidecar(name: str, fallback: str = "unnamed") -> bytes:
    r"""Return the content of a sidecar: the keywords ``nouncut`` and, below it, a name."""
    clean = " ".join(_NOT_XML.sub("", name).replace("|", "-").split())
    return _SIDECAR.format(root=_KEYWORD, name=escape(clean or fallback)).encode()


def plan_sidecars(
    run: Run, destination: Path | None = None, *, beside: bool = False
) -> list[tuple[Path, Path]]:
    """Return which image's sidecar goes where; nothing is read or written."""
    require_pictures(run, "xmp")
    paths = run.paths()
    if beside:
        return [(path, path.with_name(f"{path.name}.xmp")) for path in paths]
    root = _common_folder(paths)
    return [(path, _mirrored(path, root, destination or Path())) for path in paths]


def export_xmp(run: Run, destination: Path, *, beside: bool = False) -> ExportResult:
    """Write an XMP sidecar for every image, with its cluster as a keyword.

    Sidecars that are there stay as they are: nothing is overwritten or merged.
    """
    plan = plan_sidecars(run, destination, beside=beside)
    contents = [sidecar(name, f"cluster {number}") for number, name in enumerate(run.names)]
    make_folder = cache(lambda folder: None if beside else make_folders(folder, destination))
    n_written = n_kept = 0
    problems = []
    for (image, target), cluster in zip(plan, run.labels, strict=True):
        try:
            make_folder(target.parent)
            there = _existing(image, target, beside)
            if there is None:
                _write(target, contents[cluster])
                n_written += 1
                continue
            n_kept += 1
            if there != target or there.read_bytes() != contents[cluster]:
                problems.append(f"{printable_path(there)}: kept as it was")
        except OSError as error:
            problems.append(f"{printable_path(target)}: {describe_error(error)}")
    hint = "" if beside else _copy_hint(plan, destination)
    return ExportResult(destination, n_written, n_kept, problems, hint)


def _common_folder(paths: list[Path]) -> str | None:
    """Return the deepest folder that holds all images, or None if they are on several drives."""
    try:
        return os.path.commonpath([os.path.abspath(path.parent) for path in paths])
    except ValueError:
        return None


def _mirrored(path: Path, root: str | None, destination: Path) -> Path:
    whole = Path(os.path.abspath(path))
    if root is None:
        drive = re.sub(r"\W+", "_", whole.drive).strip("_")
        inside = Path(drive, *whole.parts[1:])
    else:
        inside = whole.relative_to(root)
    return destination / inside.with_name(f"{inside.name}.xmp")


def _existing(image: Path, target: Path, beside: bool) -> Path | None:
    """Return the sidecar that is there, beside an image of either way to name it.

    Programs that prefer ``IMG.jpg.xmp`` would overlook an ``IMG.xmp`` from then on.
    """
    if beside and not image.exists():
        raise FileNotFoundError(errno.ENOENT, "the image is not there any more")
    places = (target, image.with_suffix(".xmp")) if beside else (target,)
    return next((place for place in places if os.path.lexists(place)), None)


def _write(target: Path, content: bytes) -> None:
    with part_of(target) as part:
        part.write_bytes(content)
        put(part, target)


def _copy_hint(plan: list[tuple[Path, Path]], destination: Path) -> str:
    root = _common_folder([image for image, _ in plan])
    if root is None:
        return ""
    source, target = printable_path(destination), printable_path(root)
    return f"To put them beside the images, copy what is in {source} into {target}."
