"""The paper's tables: their rows, their data sets, their models."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.published import DEFAULT_BACKBONE, published_values
from nouncut.words.prompts import PROMPTS

TableName = Literal[
    "classic",
    "challenging",
    "kernels",
    "rad",
    "prompts",
    "encoders",
    "openclip",
    "fine",
    "shift",
    "leak",
    "time",
]
Vocabulary = Literal["full", "without class names"]

_CLASSIC = ("stl-10", "cifar-10", "cifar-20", "imagenet-10", "imagenet-dogs")
_CHALLENGING = ("dtd", "ucf-101", "imagenet-1k")
# Tables whose rows mean the same whatever the table.
_GENERAL = (
    "tab:classic",
    "tab:complex",
    "tab:fine-grained",
    "domain-shift",
    "tab:RAD",
    "tab:encoder",
    "tab:laion_clip_main",
)
# What these tables mean by a name is a network that learns from pixels, not the head on features.
FROM_PIXELS = frozenset({("tab:classic", "SCAN")})
_KERNELS = ("linear", "polynomial", "rbf", "exponential", "laplacian", "sigmoid")
_KERNEL_SECTIONS = {
    "clip": "Using CLIP image features",
    "tac": "Using TAC image-text-concentrated features",
}


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    title: str
    method: str | None = None
    published: str | None = None
    section: str = ""
    vocabulary: Vocabulary = "full"


@dataclass(frozen=True)
class Layout:
    """What a table has to hold."""

    name: str
    caption: str
    published: tuple[str, ...]
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    rows: tuple[Row, ...]


def table_layout(name: TableName) -> Layout:
    """Return one of the paper's tables."""
    return _LAYOUTS[name]


def method_layout(names: Collection[str] | None = None) -> Layout:
    """Return a table of methods, one row each."""
    chosen = _check(names) if names else [name for name in METHODS if "-prompt-" not in name]
    rows = tuple(
        Row(METHODS[name].title, name, METHODS[name].paper_name)
        for name in METHODS
        if name in chosen
    )
    return Layout("methods", "All methods.", _GENERAL, (), (DEFAULT_BACKBONE,), rows)


def keep_methods(layout: Layout, names: Collection[str]) -> Layout:
    """Return a table with some of its methods."""
    kept = tuple(row for row in layout.rows if row.method is None or row.method in _check(names))
    if not any(row.method for row in kept):
        there = dict.fromkeys(row.method for row in layout.rows if row.method)
        raise ValueError(f"The table {layout.name} has the methods {', '.join(there)}.")
    return replace(layout, rows=kept)


def _check(names: Collection[str]) -> Collection[str]:
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise ValueError(f"There is no method {unknown[0]!r}. There are: {', '.join(METHODS)}.")
    return names


def _compared(table: str) -> Iterator[Row]:
    """Yield a comparison's rows in the paper's order; what we do not run is only published."""
    of_paper = {
        "CLIP (SC)": "clip-sc-rbf",
        "TAC (SC)": "tac-sc-rbf",
        **{method.paper_name: name for name, method in METHODS.items() if _is_plain(name)},
    }
    for title in dict.fromkeys(v.method for v in published_values() if v.table == table):
        yield Row(title, None if (table, title) in FROM_PIXELS else of_paper.get(title))


def _is_plain(name: str) -> bool:
    return "-prompt-" not in name and "-sc-" not in name


def _kernel_rows() -> Iterator[Row]:
    clip, tac = _KERNEL_SECTIONS["clip"], _KERNEL_SECTIONS["tac"]
    yield Row("KMeans", None, section=clip)
    yield Row("KMeans (reproduced)", "clip-kmeans", section=clip)
    yield from (_kernel_row("clip", kernel) for kernel in _KERNELS)
    yield Row("KMeans", "tac-kmeans", section=tac)
    yield from (_kernel_row("tac", kernel) for kernel in _KERNELS)
    yield Row("Ours", "ours", section=tac)


def _kernel_row(family: str, kernel: str) -> Row:
    title = "RBF" if kernel == "rbf" else kernel.capitalize()
    return Row(title, f"{family}-sc-{kernel}", section=_KERNEL_SECTIONS[family])


def _prompt_rows() -> Iterator[Row]:
    titles = {"TAC (KMeans)": "tac-kmeans", "TAC (SC)": "tac-sc-rbf", "Ours": "ours"}
    for number, prompt in enumerate(PROMPTS, start=1):
        section = prompt.replace("{}", "").rstrip(".").strip()
        for title, method in titles.items():
            yield Row(title, f"{method}-prompt-{number}", section=section)
    yield from (Row(title, name, section="Prompt Ensembling") for title, name in titles.items())


def _make(
    name: str,
    caption: str,
    label: str,
    datasets: tuple[str, ...],
    rows: Iterator[Row],
    *models: str,
) -> Layout:
    return Layout(name, caption, (label,), datasets, models or (DEFAULT_BACKBONE,), tuple(rows))


def _all_layouts() -> Iterator[Layout]:
    eight = _CLASSIC + _CHALLENGING
    yield _make(
        "classic", "Five widely used data sets.", "tab:classic", _CLASSIC, _compared("tab:classic")
    )
    yield _make(
        "challenging",
        "Three challenging data sets.",
        "tab:complex",
        _CHALLENGING,
        _compared("tab:complex"),
    )
    yield _make("kernels", "Kernels of spectral clustering.", "tab:kernels", eight, _kernel_rows())
    yield _make(
        "rad",
        "How prompts are ensembled.",
        "tab:RAD",
        eight,
        (
            Row(title, method)
            for title, method in (
                ("TAC (KMeans)", "tac-kmeans"),
                ("TAC (SC)", "tac-sc-rbf"),
                ("Ours (naive)", "ours-naive"),
                ("Ours (PE)", "ours-pe"),
                ("Ours (RAD)", "ours"),
            )
        ),
    )
    yield _make("prompts", "One prompt at a time.", "prompt-templates", eight, _prompt_rows())
    yield _make(
        "encoders",
        "Larger models.",
        "tab:encoder",
        ("stl-10", "cifar-10", "cifar-20", "imagenet-dogs", "dtd"),
        _compared("tab:encoder"),
        "ViT-B/16",
        "ViT-L/14",
    )
    yield _make(
        "openclip",
        "A model that was trained on other images.",
        "tab:laion_clip_main",
        eight,
        _compared("tab:laion_clip_main"),
        "OpenCLIP-ViT-B/32",
    )
    yield _make(
        "fine",
        "Five fine-grained data sets.",
        "tab:fine-grained",
        ("aircraft", "food", "flowers", "pets", "cars"),
        _compared("tab:fine-grained"),
    )
    yield _make(
        "shift",
        "ImageNet under domain shift.",
        "domain-shift",
        ("imagenet-c", "imagenet-v2", "imagenet-s"),
        _compared("domain-shift"),
    )
    yield _make(
        "leak",
        "Nouns without the names of the classes.",
        "label-name leakage",
        ("cifar-10", "cifar-20", "imagenet-1k"),
        iter(
            (
                Row(
                    "WordNet w/o ground-truth class name",
                    "ours",
                    vocabulary="without class names",
                ),
                Row("Full WordNet", "ours"),
            )
        ),
    )
    yield _make("time", "Seconds by stage.", "", ("imagenet-1k",), iter((Row("Ours", "ours"),)))


_LAYOUTS = {layout.name: layout for layout in _all_layouts()}
