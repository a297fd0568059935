"""A run as an HTML table for notebooks."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError
from nouncut.images.thumbnails import encode_thumbnail
from nouncut.runs.originals import open_original
from nouncut.runs.tables import real_paths

MAX_CLUSTERS = 20
PICTURES_PER_CLUSTER = 4
PICTURE_SIDE = 96

_LEFT = 'style="text-align:left"'
_BOX = f"display:inline-block;width:{PICTURE_SIDE}px;height:{PICTURE_SIDE}px;margin:1px"
_GUESS = 'style="text-align:left;font-style:italic"'
_EMPTY_BOX = f'<span style="{_BOX};background:#ddd"></span>'


def run_html(manifest: dict[str, Any], clusters: pa.Table, images: pa.Table) -> str:
    """Return a self-contained table of clusters with small pictures."""
    shown = clusters.slice(0, MAX_CLUSTERS).to_pylist()
    has_pictures = manifest.get("source_kind") != "features"
    n_pictures = PICTURES_PER_CLUSTER if has_pictures else 0
    typical = [(cluster["exemplars"] or [])[:n_pictures] for cluster in shown]
    rows = [row for part in typical for row in part]
    pictures = dict(zip(rows, _pictures(images.take(pa.array(rows, pa.int64()))), strict=True))
    body = "".join(
        _table_row(cluster, [pictures[row] for row in part])
        for cluster, part in zip(shown, typical, strict=True)
    )
    more = len(clusters) - len(shown)
    return (
        f"<div><p><strong>{manifest['n_images']} images in {len(clusters)} clusters"
        f"</strong></p><table><thead><tr><th>cluster</th><th {_LEFT}>name</th>"
        f"<th>size</th><th></th></tr></thead><tbody>{body}</tbody></table>"
        f"{f'<p>and {more} more</p>' if more else ''}</div>"
    )


def _table_row(cluster: dict[str, Any], pictures: Sequence[str]) -> str:
    words = escape(", ".join(cluster["more_words"] or []))
    style = _GUESS if cluster["guess"] else _LEFT
    return (
        f'<tr><td>{cluster["cluster"]}</td><td {style} title="{words}">{escape(cluster["name"])}'
        f"</td><td>{cluster['size']}</td><td {_LEFT}>{''.join(pictures)}</td></tr>"
    )


def _pictures(images: pa.Table) -> list[str]:
    """Return an element for every image."""
    originals = zip(real_paths(images), images["hash"].to_pylist(), strict=True)
    return run_tasks(lambda original: _picture(*original), originals, count_threads(-1))


def _picture(path: Path, content: str | None) -> str:
    try:
        # Decoded at twice the size, so that shrinking still smooths.
        jpeg = encode_thumbnail(open_original(path, content, 2 * PICTURE_SIDE), PICTURE_SIDE)
    except ImageError:
        return _EMPTY_BOX
    source = f"data:image/jpeg;base64,{b64encode(jpeg).decode()}"
    return f'<img style="{_BOX};object-fit:contain" src="{source}" alt="">'
