"""The page as HTML: templates, styles, scripts and the content security policy."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nouncut.images.thumbnails import Thumbnail
from nouncut.report.said import Number, attributes, catalogues, percent, said_in, say
from nouncut.report.script_data import as_json

_TEMPLATE = "page.html.j2"
_STYLES = ("base", "bar", "overview", "map", "gallery", "lightbox", "sections", "responsive")
# Runs before the page is drawn, so that it never flashes in the wrong colours.
_FIRST_SCRIPT = "theme"
# Runs before the data of the images is read, so that the page never waits for its language.
_TEXTS_SCRIPT = "texts"
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
    style = "\n".join(_asset(f"{name}.css") for name in _STYLES)
    names = (_FIRST_SCRIPT, _TEXTS_SCRIPT, *_SCRIPTS)
    first, texts_script, *scripts = (_asset(f"{name}.js") for name in names)
    template = make_environment("nouncut.report").get_template(_TEMPLATE)
    return template.generate(
        thumbnail=thumbnail,
        style=Markup(style),
        first_script=Markup(first),
        scripts=[Markup(script) for script in scripts],
        texts_script=Markup(texts_script),
        policy=_policy(image_sources, style, first, texts_script, *scripts),
        **content,
    )


@cache
def make_environment(*packages: str) -> Environment:
    """Return the environment of the templates in some packages, with the catalogue's texts.

    It keeps the compiled templates, which take a third of a second.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "json": as_json,
        "number": Number,
        "percent": percent,
        "plain": str.__str__,
    }
    environment.globals |= {
        "attributes": attributes,
        "said_in": said_in,
        "say": say,
        "texts": catalogues(),
    }
    return environment


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
