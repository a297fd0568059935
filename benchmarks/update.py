"""Runs that grow: `update_run` against clustering everything again, on folders of photographs.

Run ``python benchmarks/update.py FOLDER [FOLDER ...]``; the names of the folders inside are the
classes. The number of clusters is found.

"Grown": four fifths of the images are clustered, and the rest is added by an update. Accuracy is
the share of added images whose cluster's most frequent class, among the first images, is theirs;
"first" is that share of the first images. "Clustered again" adds the same images by clustering all
of them over the first run, "alone" by clustering them from nothing. "Same group" is the adjusted
Rand index between placing and clustering again, of the added images. Seconds are those of the runs
without their reports; all images were encoded before.

"A new kind": one class is held back entirely, with a fifth of the other images. Unfamiliar images
are counted within the class and among the others. A proposal is right if most of its images are of
the class, and it finds the share of the class that is in right proposals.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from _setting import print_result, setting
from nouncut import cluster_images, update_run
from nouncut.images.find import scan_images
from nouncut.runs.run import Run
from nouncut.store.store import FeatureStore

SHARE_NEW = 0.2
N_DRAWS = 3
MOST_CLASSES = 8


class Album:
    """A folder of links to photographs, and runs of it."""

    def __init__(self, place: Path, model: str) -> None:
        self._place, self._model, self._store = place, model, FeatureStore()
        self._photos = place / "photos"

    def start(self, files: Sequence[Path]) -> Run:
        for folder in self._place.iterdir():
            shutil.rmtree(folder)
        self._photos.mkdir()
        self.add(files)
        return self.cluster("run")

    def add(self, files: Sequence[Path]) -> None:
        for file in files:
            (self._photos / f"{file.parent.name}~{file.name}").symlink_to(file.resolve())

    def cluster(self, name: str) -> Run:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cluster_images(
                self._photos, model=self._model, output=self._place / name, store=self._store
            )

    def copy(self, name: str) -> None:
        shutil.copytree(self._place / "run", self._place / name)

    def update(self, **options: Any) -> Any:
        return update_run(self._place / "run", store=self._store, **options)


def classes(run: Run) -> NDArray[Any]:
    return np.array([path.name.partition("~")[0] for path in run.paths()])


def grown(album: Album, files: Sequence[Path], rng: np.random.Generator) -> dict[str, float]:
    is_new = rng.random(len(files)) < SHARE_NEW
    first = album.start([file for file, new in zip(files, is_new, strict=True) if not new])
    acc_first = accuracy(first, set())
    added = [file for file, new in zip(files, is_new, strict=True) if new]
    names = {f"{file.parent.name}~{file.name}" for file in added}
    album.copy("again")
    album.add(added)
    placed, again = album.update().run, album.cluster("again")
    seconds, seconds_again = (sum(run.manifest["seconds"].values()) for run in (placed, again))
    alone = album.cluster("alone")
    labels = {key: labels_of(run) for key, run in (("p", placed), ("a", again))}
    common = sorted(names & labels["p"].keys() & labels["a"].keys())
    both = [[labels[key][name] for name in common] for key in ("p", "a")]
    return {
        "groups": len(placed.clusters),
        "alone": len(alone.clusters),
        "ACC first": acc_first,
        "ACC placed": accuracy(placed, names),
        "ACC clustered again": accuracy(again, names),
        "ACC alone": accuracy(alone, names),
        "same group": 100 * adjusted_rand_score(*both),
        "% moved by clustering again": 100 * again.manifest["changes"]["n_moved"] / len(files),
        "% of known kinds unfamiliar": 100 * unfamiliar(placed, names) / len(names),
        "s placed": seconds,
        "s clustered again": seconds_again,
        "ratio": seconds / seconds_again,
    }


def labels_of(run: Run) -> dict[str, int]:
    return dict(zip((path.name for path in run.paths()), run.labels.tolist(), strict=True))


def accuracy(run: Run, new: set[str]) -> float:
    """Return the percentage of images, new ones if any, in a cluster of their class."""
    names = np.array([path.name for path in run.paths()])
    is_new, found, labels = np.isin(names, list(new)), classes(run), run.labels
    most = {
        int(group): Counter(found[(labels == group) & ~is_new]).most_common(1)
        for group in np.unique(labels)
    }
    judged = is_new if new else ~is_new
    right = [
        bool(most[label]) and most[label][0][0] == own
        for label, own in zip(labels[judged].tolist(), found[judged], strict=True)
    ]
    return 100 * float(np.mean(right))


def unfamiliar(run: Run, names: set[str]) -> int:
    rows = zip(run.paths(), run.assignments["outlier"].to_pylist(), strict=True)
    return sum(outlier for path, outlier in rows if path.name in names)


def new_kind(
    album: Album, files: Sequence[Path], held: str, rng: np.random.Generator
) -> dict[str, Any]:
    is_held = np.array([file.parent.name == held for file in files])
    is_new = is_held | (rng.random(len(files)) < SHARE_NEW)
    album.start([file for file, new in zip(files, is_new, strict=True) if not new])
    added = [file for file, new in zip(files, is_new, strict=True) if new]
    album.add(added)
    before = album.update(dry_run=True).changes
    found = album.update(new_groups=True)
    own = {f"{file.parent.name}~{file.name}" for file in added if file.parent.name == held}
    others = {f"{file.parent.name}~{file.name}" for file in added} - own
    kinds, labels = classes(found.run), found.run.labels
    made = sorted(found.run.groups.found)
    rights = [number for number in made if np.mean(kinds[labels == number] == held) > 0.5]
    in_right = np.isin(labels, rights)
    computed = found.run.computed
    return {
        "class": held,
        "images": len(own),
        "% unfamiliar": 100 * unfamiliar(computed, own) / len(own),
        "% of others unfamiliar": 100 * unfamiliar(computed, others) / max(1, len(others)),
        "proposals": len(made),
        "right": len(rights),
        "% of the class in them": 100 * float(np.mean(in_right[kinds == held])),
        "% of them right": 100 * float(np.mean(kinds[in_right] == held)) if rights else None,
        "name": ", ".join(found.run.groups.names[number] for number in rights),
        "advised": bool(before.why_recluster),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of photographs")
    parser.add_argument("--model", default="mini", help="name for load_encoder (default: mini)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result, grown_rows = setting("scikit-learn"), []
    for folder in arguments.folders:
        files = scan_images(folder).files
        names = sorted({file.parent.name for file in files})
        with TemporaryDirectory() as place:
            album = Album(Path(place), arguments.model)
            album.start(files)  # Encodes them.
            draws = [grown(album, files, np.random.default_rng(n)) for n in range(N_DRAWS)]
            means = {key: float(np.mean([row[key] for row in draws])) for key in draws[0]}
            grown_rows.append({"set": folder.name} | means)
            rng = np.random.default_rng(0)
            chosen = rng.permutation(names)[:MOST_CLASSES]
            result[f"A new kind: {folder.name}"] = [
                new_kind(album, files, held, rng) for held in chosen
            ]
    result["Grown by a quarter"] = grown_rows
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
