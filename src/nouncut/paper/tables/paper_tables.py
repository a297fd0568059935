"""The paper's tables: their rows, data sets and models."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from nouncut.errors import ParameterError
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.baselines.spectral import KERNEL_NAMES
from nouncut.paper.published import DEFAULT_BACKBONE, TableName, published_values
from nouncut.words.prompts import PROMPTS

Vocabulary = Literal["full", "without class names", "without related words"]

# The paper's tables by their labels in its source, where a row means the same in each.
_COMPARISONS = (
    "tab:classic",
    "tab:complex",
    "tab:fine-grained",
    "domain-shift",
    "tab:RAD",
    "tab:encoder",
    "tab:laion_clip_main",
)
# Here the name stands for a network that learns from pixels, not for a head on features.
FROM_PIXELS = frozenset({("tab:classic", "SCAN")})
_CLASSIC = ("stl-10", "cifar-10", "cifar-20", "imagenet-10", "imagenet-dogs")
_CHALLENGING = ("dtd", "ucf-101", "imagenet-1k")
_EIGHT = _CLASSIC + _CHALLENGING


@dataclass(frozen=True)
class Row:
    """A row of a table; without `method` it has published values only."""

    title: str
    method: str | None = None
    published: str | None = None
    section: str = ""
    vocabulary: Vocabulary = "full"


@dataclass(frozen=True)
class Layout:
    """The rows, data sets and models of a table; `published` are the paper's labels for it."""

    name: str
    caption: str
    published: tuple[str, ...]
    datasets: tuple[str, ...]
    rows: tuple[Row, ...]
    models: tuple[str, ...] = (DEFAULT_BACKBONE,)


def table_layout(name: TableName) -> Layout:
    """Return one of the paper's tables."""
    return _LAYOUTS[name]


def method_layout(names: Collection[str] | None = None) -> Layout:
    """Return a table of methods, one row each; of all but the single prompts by default."""
    chosen = _check_names(names) if names else [name for name in METHODS if "-prompt-" not in name]
    rows = tuple(
        Row(method.title, name, method.paper_name)
        for name, method in METHODS.items()
        if name in chosen
    )
    return Layout("methods", "All methods.", _COMPARISONS, (), rows)


def keep_methods(layout: Layout, names: Collection[str]) -> Layout:
    """Return a table with some of its methods."""
    _check_names(names)
    kept = tuple(row for row in layout.rows if row.method is None or row.method in names)
    if not any(row.method for row in kept):
        known = dict.fromkeys(row.method for row in layout.rows if row.method)
        raise ParameterError(
            f"`methods` has none of the table {layout.name}. Choose from: {', '.join(known)}."
        )
    return replace(layout, rows=kept)


def without_related_words(layout: Layout) -> Layout:
    """Return a table whose rows without class names lack plurals and synonyms of them too."""
    rows = tuple(
        replace(
            row,
            title="WordNet w/o class names, plurals and synonyms",
            published=row.title,
            vocabulary="without related words",
        )
        if row.vocabulary == "without class names"
        else row
        for row in layout.rows
    )
    return replace(layout, rows=rows)


def _check_names(names: Collection[str]) -> Collection[str]:
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise ParameterError(
            f"`methods` has {unknown[0]!r}, which is no method. Choose from: {', '.join(METHODS)}."
        )
    return names


def _compared(table: str) -> tuple[Row, ...]:
    """Return the rows of a comparison in the paper's order."""
    methods = {
        method.paper_name: name for name, method in METHODS.items() if "-prompt-" not in name
    }
    titles = dict.fromkeys(value.method for value in published_values() if value.table == table)
    return tuple(
        Row(title, None if (table, title) in FROM_PIXELS else methods.get(title))
        for title in titles
    )


def _kernel_rows() -> Iterator[Row]:
    clip, tac = "Using CLIP image features", "Using TAC image-text-concentrated features"
    yield Row("KMeans", section=clip)
    yield Row("KMeans (reproduced)", "clip-kmeans", section=clip)
    yield from _kernels("clip", clip)
    yield Row("KMeans", "tac-kmeans", section=tac)
    yield from _kernels("tac", tac)
    yield Row("Ours", "ours", section=tac)


def _kernels(family: str, section: str) -> Iterator[Row]:
    for kernel in KERNEL_NAMES:
        title = "RBF" if kernel == "rbf" else kernel.capitalize()
        yield Row(title, f"{family}-sc-{kernel}", section=section)


def _prompt_rows() -> Iterator[Row]:
    titles = {"TAC (KMeans)": "tac-kmeans", "TAC (SC)": "tac-sc-rbf", "Ours": "ours"}
    for number, prompt in enumerate(PROMPTS, start=1):
        section = prompt.replace("{}", "").rstrip(".").strip()
        for title, method in titles.items():
            yield Row(title, f"{method}-prompt-{number}", section=section)
    yield from (Row(title, name, section="Prompt Ensembling") for title, name in titles.items())


_ENSEMBLE_ROWS = (
    Row("TAC (KMeans)", "tac-kmeans"),
    Row("TAC (SC)", "tac-sc-rbf"),
    Row("Ours (naive)", "ours-naive"),
    Row("Ours (PE)", "ours-pe"),
    Row("Ours (RAD)", "ours"),
)
_LEAK_ROWS = (
    Row("WordNet w/o ground-truth class name", "ours", vocabulary="without class names"),
    Row("Full WordNet", "ours"),
)


_TESTED_ROWS = tuple(
    row
    for row in _compared("tab:complex")
    if row.method and row.title not in ("CLIP (zero-shot)", "SCAN")
)


def _comparison(name: str, caption: str, label: str, *datasets: str) -> Layout:
    return Layout(name, caption, (label,), datasets, _compared(label))


_ALL_LAYOUTS = (
    _comparison("classic", "Five widely used data sets.", "tab:classic", *_CLASSIC),
    _comparison("challenging", "Three challenging data sets.", "tab:complex", *_CHALLENGING),
    Layout(
        "kernels",
        "Kernels of spectral clustering.",
        ("tab:kernels",),
        _EIGHT,
        tuple(_kernel_rows()),
    ),
    Layout("rad", "How prompts are ensembled.", ("tab:RAD",), _EIGHT, _ENSEMBLE_ROWS),
    Layout(
        "prompts", "One prompt at a time.", ("prompt-templates",), _EIGHT, tuple(_prompt_rows())
    ),
    replace(
        _comparison(
            "encoders",
            "Larger models.",
            "tab:encoder",
            *("stl-10", "cifar-10", "cifar-20", "imagenet-dogs", "dtd"),
        ),
        models=("ViT-B/16", "ViT-L/14"),
    ),
    replace(
        _comparison(
            "openclip", "A model that was trained on other images.", "tab:laion_clip_main", *_EIGHT
        ),
        # The paper does not say which weights; its authors' settings name LAION-400M.
        models=("OpenCLIP-ViT-B/32-400M",),
    ),
    _comparison(
        "fine",
        "Five fine-grained data sets.",
        "tab:fine-grained",
        *("aircraft", "food", "flowers", "pets", "cars"),
    ),
    _comparison(
        "shift",
        "ImageNet under domain shift.",
        "domain-shift",
        *("imagenet-c", "imagenet-v2", "imagenet-s"),
    ),
    Layout(
        "leak",
        "Nouns without the names of the classes.",
        ("label-name leakage",),
        ("cifar-10", "cifar-20", "imagenet-1k"),
        _LEAK_ROWS,
    ),
    Layout(
        "wilcoxon",
        "Whether our method differs from others.",
        ("tab:classic", "tab:complex"),
        _EIGHT,
        _TESTED_ROWS,
    ),
    Layout("time", "Seconds by stage.", (), ("imagenet-1k",), (Row("Ours", "ours"),)),
)
_LAYOUTS = {layout.name: layout for layout in _ALL_LAYOUTS}
