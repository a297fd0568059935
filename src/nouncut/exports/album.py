"""A photo album to share: a page with the groups, and a page for each with its pictures.

The pictures are new files without metadata, so neither the camera nor the place is given away.
The pages load nothing from a network, and work from a disk and without scripts.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from nouncut.compute.file_names import DistinctNames
from nouncut.compute.files import atomic_file, explained_writing
from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError, InputError, printable_path
from nouncut.exports.destination import check_export_file, make_export_folder, make_folders
from nouncut.exports.made_files import MadeFile, MadeFiles, read_made_files
from nouncut.exports.result import ExportResult
from nouncut.images.hashing import content_hash
from nouncut.images.thumbnails import encode_thumbnail
from nouncut.runs.originals import open_original

if TYPE_CHECKING:
    from nouncut.exports.part import Part

_INDEX, _PAGES, _FOLDERS = "index.html", "groups", ("pictures", "thumbnails")
_PICTURE_SIDE, _THUMBNAIL_SIDE = 1600, 480
_PAGE_BYTES = 80
_BATCH = 64
# Rows of pictures need the widths at a common height; the page has a style for each ratio.
_RATIOS = [tenths / 10 for tenths in range(4, 31)]


@dataclass(frozen=True)
class Picture:
    """A picture of the album: its name there, its size, and the name of its file."""

    name: str
    width: int
    height: int
    caption: str

    @property
    def ratio_class(self) -> str:
        """The style for its ratio of width to height."""
        ratio = min(_RATIOS, key=lambda one: abs(one - self.width / self.height))
        return f"r{round(10 * ratio)}"


@dataclass(frozen=True)
class Group:
    """A group of the album: its name, its page, its images by row, and the row of the cover."""

    name: str
    page: str
    rows: list[int]
    cover: int


def export_album(
    part: Part,
    destination: Path,
    *,
    title: str | None = None,
    file_names: bool = True,
    overwrite: bool = False,
    preview: bool = False,
) -> ExportResult:
    """Write the album; pages and pictures of an earlier one that it no longer has are removed."""
    problems: list[str] = []
    groups = _groups(part, problems)
    with explained_writing("the album", destination, "choose another `output`"):
        made = read_made_files(destination, "album", problems)
    pages = [_INDEX, *(f"{_PAGES}/{group.page}" for group in groups)]
    for page in pages:
        if not made.is_ours(page):
            check_export_file(destination / page, overwrite=overwrite)
    names = _picture_names(part, groups)
    hint = f"Open {printable_path(destination / _INDEX)}, or send the whole folder."
    if preview:
        files = [destination / name for name in (*pages, *_picture_files(names.values()))]
        return ExportResult(destination, len(names), 0, problems, hint, files, is_preview=True)
    make_export_folder(destination)
    with explained_writing("the album", destination, "choose another `output`"):
        try:
            for folder in (_PAGES, *_FOLDERS):
                made.claim_folder(folder)
                make_folders(destination / folder, destination)
            pictures, n_kept = _write_pictures(part, names, made, problems)
            shown = _Shown(title or _title(part), groups, pictures, file_names)
            for page, content in shown.pages():
                _write(made, page, content.encode())
            wanted = [*pages, *_picture_files(one.name for one in pictures.values())]
            n_removed = made.remove(set(made.files) - set(wanted), problems)
            made.remove_empty_folders(wanted, problems)
        finally:
            made.write()
    files = [destination / name for name in wanted]
    n_new = len(pictures) - n_kept
    return ExportResult(destination, n_new, n_kept, problems, hint, files, n_removed)


def _picture_files(names: Iterable[str]) -> list[str]:
    """Return the files of pictures, once for images with the same content."""
    return [f"{folder}/{name}" for name in dict.fromkeys(names) for folder in _FOLDERS]


def _groups(part: Part, problems: list[str]) -> list[Group]:
    """Return the groups that have images in the part, the largest first."""
    labels, found = part.labels, []
    page_names = DistinctNames(_PAGE_BYTES)
    for cluster in part.run.clusters.select(["cluster", "name", "exemplars"]).to_pylist():
        number, name = cluster["cluster"], cluster["name"]
        rows = part.rows[labels == number].tolist()
        if rows:
            page = page_names.add(f"{name}.html", fallback=f"group {number}.html")
            cover = next((row for row in cluster["exemplars"] if row in rows), rows[0])
            found.append(Group(name or f"group {number}", page, rows, cover))
    if not found:
        raise InputError("There are no images to show. Choose some that are not set aside.")
    if n_aside := int((labels == -1).sum()):
        problems.append(f"{n_aside:,} image{'s' * (n_aside != 1)} left out: set aside")
    return sorted(found, key=lambda group: -len(group.rows))


def _title(part: Part) -> str:
    folder = part.run.common_folder()
    return printable_path(folder.name) if folder is not None and folder.name else "Album"


def _picture_names(part: Part, groups: list[Group]) -> dict[int, str]:
    """Return the names of the pictures by row; they say nothing about the original's name."""
    contents = part.run.images["hash"]
    rows = [row for group in groups for row in group.rows]
    hashes = {row: contents[row].as_py() or f"unknown {row}" for row in rows}
    return {row: f"{sha256(text.encode()).hexdigest()[:16]}.jpg" for row, text in hashes.items()}


def _write_pictures(
    part: Part, names: dict[int, str], made: MadeFiles, problems: list[str]
) -> tuple[dict[int, Picture], int]:
    """Write the pictures that are missing; return all by row, and how many were there."""
    originals = dict(zip(part.rows.tolist(), part.paths(), strict=True))
    contents = part.run.images["hash"]

    def make(row: int) -> tuple[Picture, list[bytes]] | ImageError:
        name, path = names[row], originals[row]
        caption = printable_path(path.stem)
        if all(made.is_ours(file) for file in _picture_files([name])):
            size = _jpeg_size(made.root / _FOLDERS[0] / name)
            if size is not None:
                return Picture(name, *size, caption), []
        try:
            picture = open_original(path, contents[row].as_py(), min_side=_PICTURE_SIDE)
        except ImageError as error:
            return error
        encoded = [encode_thumbnail(picture, _PICTURE_SIDE)]
        about = Picture(name, *picture.size, caption)
        return about, [*encoded, encode_thumbnail(picture, _THUMBNAIL_SIDE)]

    found: dict[int, Picture] = {}
    known = {name for name in set(names.values()) if all(map(made.is_ours, _picture_files([name])))}
    n_kept = 0
    rows = list(names)
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        for row, result in zip(batch, run_tasks(make, batch, count_threads(-1)), strict=True):
            if isinstance(result, ImageError):
                problems.append(str(result))
                continue
            found[row], encoded = result
            # A copy of a picture that was just written is new as well.
            n_kept += not encoded and names[row] in known
            for folder, content in zip(_FOLDERS, encoded, strict=False):
                _write(made, f"{folder}/{names[row]}", content)
    return found, n_kept


def _jpeg_size(path: Path) -> tuple[int, int] | None:
    try:
        with Image.open(path, formats=["JPEG"]) as picture:
            return picture.size
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


def _write(made: MadeFiles, name: str, content: bytes) -> None:
    path = made.root / name
    with atomic_file(path, sync=False) as file:
        file.write(content)
    made.files[name] = MadeFile("file", content=content_hash(path))


@dataclass(frozen=True)
class _Shown:
    """The pages of an album."""

    title: str
    groups: list[Group]
    pictures: dict[int, Picture]
    file_names: bool

    def pages(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the content of every page."""
        environment = Environment(
            loader=PackageLoader("nouncut.exports"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["address"] = quote
        style, script = _style(), _asset("album.js")
        common: dict[str, Any] = {
            "title": self.title,
            "style": Markup(style),
            "script": Markup(script),
            "policy": _policy(style, script),
            "groups": self.groups,
            "pictures": self.pictures,
        }
        yield _INDEX, environment.get_template("album.html.j2").render(common)
        page = environment.get_template("album_group.html.j2")
        for number, group in enumerate(self.groups):
            # The neighbours of the first and the last group are each other.
            around = {
                "before": self.groups[number - 1],
                "after": self.groups[(number + 1) % len(self.groups)],
            }
            shown = [self.pictures[row] for row in group.rows if row in self.pictures]
            more = {"group": group, "shown": shown, "file_names": self.file_names}
            yield f"{_PAGES}/{group.page}", page.render(common | around | more)


def _style() -> str:
    ratios = "\n".join(f".r{round(10 * ratio)} {{ --ratio: {ratio}; }}" for ratio in _RATIOS)
    return f"{_asset('album.css')}{ratios}\n"


def _policy(style: str, script: str) -> str:
    """Return a policy that allows the page's own style and script, and pictures beside it."""
    style_hash, script_hash = (
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (style, script)
    )
    # A page opened from a disk has no origin, so 'self' alone would block the pictures.
    return (
        f"default-src 'none'; img-src 'self' file:; style-src {style_hash}; "
        f"script-src {script_hash}; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("nouncut.exports").joinpath("assets", name).read_text("utf-8")
