"""The page of the explorer: its template, and the styles and scripts that it may load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from nouncut.report.render import MAP_SCRIPTS, make_environment

_TEMPLATE = "explore.html.j2"
_PACKAGES = ("nouncut.report", "nouncut.explore")
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

_STYLES = ("base", "bar", "map", "gallery", "lightbox", "explore", "explore-parts")
# In the order of loading: each script uses the ones before it.
_SCRIPTS = (
    *("server", "page", "counting", "data", "thumbnails", "colours", "place", "selection"),
    *("toast", "dialogs", "edits", "search"),
    *MAP_SCRIPTS,
    *("reasons", "picture", "chooser", "namer", "splitter", "pictures", "tree", "head", "chosen"),
    *("asker", "past", "exporter", "layout", "keys", "start"),
)


@dataclass(frozen=True)
class Asset:
    """A style or a script."""

    content: bytes
    media_type: str
    etag: str


def read_assets() -> dict[str, Asset]:
    """Return all styles and scripts by name; the page can load nothing else."""
    found = {}
    folders = (files(package).joinpath("assets") for package in _PACKAGES)
    for folder in folders:
        for path in folder.iterdir() if folder.is_dir() else ():
            media_type = next((_TYPES[end] for end in _TYPES if path.name.endswith(end)), None)
            if media_type is not None:
                content = path.read_bytes()
                etag = f'"{sha256(content).hexdigest()[:32]}"'
                found[path.name] = Asset(content, media_type, etag)
    return found


def render_page(content: Mapping[str, Any]) -> str:
    """Return the page as HTML."""
    template = make_environment(*reversed(_PACKAGES)).get_template(_TEMPLATE)
    return template.render(styles=_STYLES, scripts=_SCRIPTS, **content)
