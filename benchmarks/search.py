"""Search on folders of labelled photographs: class names as texts, images as examples, duplicates.

Run ``python benchmarks/search.py FOLDER [FOLDER ...]``; each folder has one sub-folder per class.
Images are clustered by the product with the embedded model, the number of clusters found.

"% of 20" is the share of the first 20 images that are of the class that was searched for: by text
with and without the names of the groups, and by example, for 100 random images. "Broader" searches
for all words of WordNet above the classes, with 4 bits of information or more and fewer images than
all; right are images whose class is below the word.

Duplicates: 40 random images are added to the collection a second time, saved in another way. Shown
are the share of them that are found with their original, and the share of the original images
that are grouped with another original. Many of these are nearly the same indeed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance

from _setting import print_result, setting
from naming import class_senses
from nouncut import Run, cluster_images
from nouncut.errors import InputError
from nouncut.runs.search import Searcher
from nouncut.words.backoff import usual_word
from nouncut.words.tree import information_bits
from nouncut.words.wordnet import broader_synsets, load_wordnet, synset_rows

N = 20
N_EXAMPLES = 100
N_COPIES = 40
LEAST_BITS = 4.0

COPIES: dict[str, Callable[[Image.Image], tuple[Image.Image, int]]] = {
    "JPEG quality 50": lambda image: (image, 50),
    "20 % brighter": lambda image: (ImageEnhance.Brightness(image).enhance(1.2), 90),
    "5 % cropped": lambda image: (image.crop(_inner(image)), 90),
}


def _inner(image: Image.Image) -> tuple[int, int, int, int]:
    left, top = image.width // 40, image.height // 40
    return left, top, image.width - left, image.height - top


def by_texts(run: Run) -> dict[str, Any]:
    classes = np.array([path.parent.name for path in run.paths()])
    above = {name: broader_synsets(class_senses(name)) for name in set(classes)}
    names = {name.replace("_", " ").replace("-", " "): {name} for name in above}
    broad: dict[str, set[str]] = {}
    for id_ in sorted({id_ for ids in above.values() for id_ in ids}):
        if information_bits()[synset_rows([id_])[0]] >= LEAST_BITS:
            word = usual_word(load_wordnet()[id_])
            broad.setdefault(word, set()).update(n for n, ids in above.items() if id_ in ids)
    broad = {word: right for word, right in broad.items() if len(right) < len(above)}
    searcher = Searcher(run)
    start = time.perf_counter()
    searcher.by_text("dog")
    first = time.perf_counter() - start
    row: dict[str, Any] = {"images": len(classes), "groups": len(run.clusters)}
    for title, queries in (("class names", names), ("broader words", broad)):
        found = {text: _ranked(searcher, text) for text in queries}
        for by_name in (True, False):
            shares = [
                _precision(classes, found[text][by_name], right) for text, right in queries.items()
            ]
            kind = "with names" if by_name else "cosine alone"
            row[f"{title} ({len(queries)}), % of 20, {kind}"] = round(100 * np.mean(shares), 1)
    start = time.perf_counter()
    for text in names:
        _ranked(searcher, text)
    row["ms first, each further"] = (
        f"{1000 * first:.0f}, {1000 * (time.perf_counter() - start) / len(names):.1f}"
    )
    return row


def _ranked(searcher: Searcher, text: str) -> dict[bool, Any]:
    """Return rows in order, with names and by the cosine alone; none if no word is known."""
    try:
        table = searcher.by_text(text, None)
    except InputError:
        return {True: np.empty(0, int), False: np.empty(0, int)}
    order = np.argsort(-table["score"].to_numpy(), kind="stable")
    return {True: table["row"].to_numpy(), False: table["row"].to_numpy()[order]}


def _precision(classes: Any, rows: Any, right: Iterable[str]) -> float:
    wanted = np.isin(classes, list(right))
    # A class may have fewer images than are asked for.
    n = min(N, int(wanted.sum()))
    return float(wanted[rows[:n]].sum() / n)


def by_examples(run: Run) -> float:
    classes = np.array([path.parent.name for path in run.paths()])
    chosen = np.random.default_rng(0).choice(len(classes), N_EXAMPLES, replace=False)
    searcher = Searcher(run)
    shares = [
        _precision(classes, searcher.like(int(i))["row"].to_numpy(), [classes[i]]) for i in chosen
    ]
    return round(100 * float(np.mean(shares)), 1)


def duplicates(folder: Path, run: Run) -> list[dict[str, Any]]:
    rows = []
    chosen = np.random.default_rng(0).choice(len(run.labels), N_COPIES, replace=False)
    originals = [run.paths()[i] for i in chosen]
    for title, change in COPIES.items():
        with tempfile.TemporaryDirectory() as place:
            copies = Path(place, "copies")
            copies.mkdir()
            for number, path in enumerate(originals):
                image, quality = change(Image.open(path).convert("RGB"))
                image.save(copies / f"{number}.jpg", quality=quality)
            again = cluster_images([folder, copies], model="mini", output=Path(place, "run"))
            table = again.duplicates()
        groups = dict(zip(table["path"].to_pylist(), table["group"].to_pylist(), strict=True))
        found = [
            str(copies / f"{number}.jpg") in groups
            and groups[str(copies / f"{number}.jpg")] == groups.get(str(path))
            for number, path in enumerate(originals)
        ]
        alone = run.duplicates()
        rows.append(
            {
                "saved as": title,
                "% found": round(100 * float(np.mean(found)), 1),
                "% of originals in groups": round(100 * len(alone) / len(run.labels), 1),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = setting("pyarrow")
    for folder in arguments.folders:
        with tempfile.TemporaryDirectory() as place:
            run = cluster_images(folder, model="mini", output=Path(place, "run"))
            row = by_texts(run) | {"examples, % of 20": by_examples(run)}
            result[folder.name] = [{"": key, "value": value} for key, value in row.items()]
            result[f"{folder.name}: duplicates"] = duplicates(folder, run)
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
