"""XMP sidecars: the cluster as a keyword, for photo managers.

A sidecar is named after the whole file name, ``IMG.jpg.xmp``: digiKam, darktable and Immich look
for this name, and ``IMG.jpg`` and ``IMG.png`` do not share a sidecar. Lightroom reads sidecars of
raw files only, never of JPEG or PNG; there, ``exiftool -tagsfromfile IMG.jpg.xmp IMG.jpg`` copies
the keywords into the image itself.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from nouncut.compute.files import atomic_file
from nouncut.errors import ImageError, describe_error, printable_path
from nouncut.exports.destination import make_export_folder, make_folders
from nouncut.exports.result import ExportResult, require_image_files
from nouncut.runs.originals import check_original

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
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
    xmlns:digiKam="http://www.digikam.org/ns/1.0/">
   <dc:subject>
    <rdf:Bag>
{keywords}
    </rdf:Bag>
   </dc:subject>
   <lr:hierarchicalSubject>
    <rdf:Bag>
     <rdf:li>{piped}</rdf:li>
    </rdf:Bag>
   </lr:hierarchicalSubject>
   <digiKam:TagsList>
    <rdf:Seq>
     <rdf:li>{slashed}</rdf:li>
    </rdf:Seq>
   </digiKam:TagsList>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"""


def sidecar(name: str, fallback: str = "unnamed", above: Sequence[str] = ()) -> bytes:
    """Return a sidecar with the keyword ``nouncut`` and, below it, the groups above and a name."""
    cleaned = [" ".join(_NOT_XML.sub("", one).replace("|", "-").split()) for one in (*above, name)]
    cleaned[-1] = cleaned[-1] or fallback
    path = [_KEYWORD, *(escape(one) for one in cleaned if one)]
    return _SIDECAR.format(
        keywords="\n".join(f"     <rdf:li>{one}</rdf:li>" for one in dict.fromkeys(path)),
        piped="|".join(path),
        slashed="/".join(one.replace("/", "-") for one in path),
    ).encode()


def plan_sidecars(run: Run, destination: Path, *, beside: bool = False) -> list[tuple[Path, Path]]:
    """Return each image and the path of its sidecar: beside it, or in a mirror of its folder.

    Images that are set aside get none.
    """
    require_image_files(run, "xmp")
    every = run.paths()
    images = [image for image, label in zip(every, run.labels, strict=True) if label >= 0]
    if beside:
        return [(image, Path(f"{image}.xmp")) for image in images]
    root = _common_folder(every)
    return [(image, _mirrored(image, root, destination)) for image in images]


def export_xmp(
    run: Run, destination: Path, *, beside: bool = False, nested: bool = False
) -> ExportResult:
    """Write the sidecars that are missing; existing ones are neither overwritten nor merged."""
    plan = plan_sidecars(run, destination, beside=beside)
    above = run.tree.paths() if nested else {}
    contents = {
        number: sidecar(name, f"cluster {number}", above.get(number, (name,))[:-1])
        for number, name in run.names_by_cluster.items()
    }
    sources = run.manifest.get("source") or []
    if not beside:
        make_export_folder(destination)
    make_folder = cache(partial(make_folders, root=destination))
    n_written = n_kept = 0
    problems = []
    clusters = [label for label in run.labels.tolist() if label >= 0]
    for (image, target), cluster in zip(plan, clusters, strict=True):
        try:
            if beside:
                _check_there(image, sources)
            else:
                make_folder(target.parent)
            existing = _existing_sidecar(image, target, beside)
            if existing is None:
                _write(target, contents[cluster])
                n_written += 1
                continue
            n_kept += 1
            if existing != target or not _holds(existing, contents[cluster]):
                problems.append(f"{printable_path(existing)}: kept as it was")
        except ImageError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{printable_path(target)}: {describe_error(error)}")
    hint = "" if beside else _copy_hint(plan, destination)
    return ExportResult(destination, n_written, n_kept, problems, hint)


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


def _mirrored(image: Path, root: str | None, destination: Path) -> Path:
    path = Path(_absolute(image))
    if root is None:
        drive = re.sub(r"\W+", "_", path.drive).strip("_")
        inside = Path(drive, *path.parts[1:])
    else:
        inside = path.relative_to(root)
    return destination / f"{inside}.xmp"


def _check_there(image: Path, sources: list[str]) -> None:
    if not image.exists():
        raise FileNotFoundError(errno.ENOENT, "the image no longer exists")
    check_original(image, sources)


def _existing_sidecar(image: Path, target: Path, beside: bool) -> Path | None:
    if not beside:
        return target if os.path.lexists(target) else None
    # Programs that prefer IMG.jpg.xmp would ignore an existing IMG.xmp from then on.
    names = (target, Path(f"{os.path.splitext(image)[0]}.xmp"))
    return next((path for path in names if os.path.lexists(path)), None)


def _holds(path: Path, content: bytes) -> bool:
    # Reading a device or a pipe might never end.
    state = path.lstat()
    is_alike = stat.S_ISREG(state.st_mode) and state.st_size == len(content)
    return is_alike and path.read_bytes() == content


def _write(target: Path, content: bytes) -> None:
    with atomic_file(target, replace=False, sync=False) as file:
        file.write(content)


def _copy_hint(plan: list[tuple[Path, Path]], destination: Path) -> str:
    root = _common_folder([image for image, _ in plan])
    if root is None:
        return ""
    source, target = printable_path(destination), printable_path(root)
    return f"To put them beside the images, copy what is in {source} into {target}."
