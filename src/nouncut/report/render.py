"""The page as HTML: templates, styles, scripts and the content security policy."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nouncut.images.thumbnails import Thumbnail
from nouncut.report.script_data import as_json

_TEMPLATE = "page.html.j2"
_STYLES = ("base", "bar", "overview", "map", "gallery", "lightbox", "sections", "responsive")
# Runs before the page is drawn, so that it never flashes in the wrong colours.
_FIRST_SCRIPT = "theme"
# In the order of loading: each script uses the ones before it.
MAP_SCRIPTS = (
    *("camera", "dot_grid", "points", "photos", "regions", "map_names", "labels"),
    *("gestures", "map_card", "map"),
)
_SCRIPTS = (
    "page",
    "counting",
    "data",
    "thumbnails",
    "clipboard",
    "reasons",
    "lightbox",
    "colours",
    "search",
    "selection",
    *MAP_SCRIPTS,
    "gallery",
    "rename",
    "keys",
)


def render_page(
    thumbnail: Callable[[int], Thumbnail], image_sources: str, **content: Any
) -> Iterator[str]:
    """Yield the page in pieces; each thumbnail is read when it is needed."""
    environment = Environment(
        loader=PackageLoader("nouncut.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"counted": counted, "percent": percent, "json": as_json}
    # Macros see globals, but not the variables of the template.
    environment.globals["thumbnail"] = thumbnail
    style = "\n".join(_asset(f"{name}.css") for name in _STYLES)
    first, *scripts = (_asset(f"{name}.js") for name in (_FIRST_SCRIPT, *_SCRIPTS))
    return environment.get_template(_TEMPLATE).generate(
        style=Markup(style),
        first_script=Markup(first),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(image_sources, style, first, *scripts),
        **content,
    )


def _policy(image_sources: str, style: str, *scripts: str) -> str:
    """Return a policy that allows only the page's own style, scripts and images."""
    return (
        f"default-src 'none'; img-src {image_sources}; style-src {_source_hash(style)}; "
        f"script-src {' '.join(map(_source_hash, scripts))}; base-uri 'none'; form-action 'none'"
    )


def _source_hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return files("nouncut.report").joinpath("assets", name).read_text("utf-8")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, such as "1 image" or "2 images"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float | None) -> str:
    """Return a share in percent; 0 % and 100 % only for exactly none and all."""
    if share is None or share != share:
        return "unknown"
    if 0 < share < 0.005:
        return "under 1\N{NO-BREAK SPACE}%"
    if 0.995 <= share < 1:
        return "over 99\N{NO-BREAK SPACE}%"
    return f"{share:.0%}".replace("%", "\N{NO-BREAK SPACE}%")
