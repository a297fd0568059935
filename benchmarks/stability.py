"""Names that stay when a folder changes a little, on folders of photographs.

Run ``python benchmarks/stability.py FOLDER [FOLDER ...]``. The number of clusters is found, or
given with ``-k``. A name is kept if the cluster that now holds most of the images of its cluster
has it. "Alone" compares independent runs; "after" is a run that is repeated over the earlier one;
"given" are names that a person gave to all clusters, and "told" those of them that found no place
and are kept in the manifest. A foreign photograph is taken from the next folder.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from _setting import print_result, setting
from nouncut import open_run
from nouncut.images.find import scan_images
from nouncut.runs.cluster import make_run
from nouncut.runs.editing import edit_run, plan_rename
from nouncut.runs.job import Job
from nouncut.runs.run import Run, run_identities
from nouncut.runs.settings import Settings
from nouncut.store.store import FeatureStore

N_DRAWS = 5
SHARE = 0.02
SEEDS = range(1, 5)


class Runs:
    """Makes runs in a folder of their own; every cluster gets a name from a person as well."""

    def __init__(self, folder: Path, n_clusters: Any, model: str) -> None:
        self._folder, self._options = folder, {"n_clusters": n_clusters, "model": model}
        self._store = FeatureStore()

    def alone(self, name: str, paths: Sequence[Path], random_state: int = 0) -> Run:
        run = self._make(self._folder / name, paths, random_state)
        names = {c: f"mine {c}" for c in range(len(run.clusters))}
        edit_run(run, plan_rename(names))
        return open_run(run.directory)

    def after(self, before: Run, other: Run) -> Run:
        """Make a run over a copy of an earlier one, with the images and the seed of another."""
        place = self._folder / "after"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(before.directory, place)
        seed = other.manifest["settings"]["random_state"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._make(place, other.paths(), seed)

    def _make(self, place: Path, paths: Sequence[Path], random_state: int) -> Run:
        settings = Settings(random_state=random_state, **self._options)
        return make_run([str(path) for path in paths], place, Job(settings, self._store))


def found_names(run: Run) -> list[str]:
    names: list[str] = Run(run.directory, run.manifest).clusters["name"].to_pylist()
    return names


def compare(runs: Runs, before: Run, alone: Run) -> dict[str, float]:
    """Return the shares of the earlier run's names that are kept."""
    after = runs.after(before, alone)
    n_before, about = len(before.clusters), after.manifest["earlier_run"]
    n_told = len(after.manifest.get("unmatched_names", ()))
    return {
        "groups": n_before,
        "alone": len(alone.clusters),
        "after": len(after.clusters),
        "% matched after": 100 * about["n_matched"] / n_before,
        "% kept alone": share_kept(before, alone),
        "% kept after": share_kept(before, after),
        "% given kept": 100 * about["n_given_kept"] / n_before,
        "% given told": 100 * n_told / n_before,
    }


def share_kept(before: Run, after: Run) -> float:
    old, new = found_names(before), found_names(after)
    heirs = heirs_of(before, after)
    return 100 * sum(new[heirs[c]] == name for c, name in enumerate(old) if c in heirs) / len(old)


def heirs_of(before: Run, after: Run) -> dict[int, int]:
    """Return the new cluster with most of the images of every earlier one."""
    now = dict(zip(run_identities(after), after.labels.tolist(), strict=True))
    found: dict[int, list[int]] = defaultdict(list)
    for image, label in zip(run_identities(before), before.labels.tolist(), strict=True):
        if image in now:
            found[label].append(now[image])
    return {label: int(np.bincount(heirs).argmax()) for label, heirs in found.items()}


def edits(paths: Sequence[Path], foreign: Path, folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield small edits of a folder: what was done, and the files afterwards."""
    middle, rest = paths[len(paths) // 2], list(paths)
    rest.remove(middle)
    folder.mkdir()
    renamed = folder / f"a new name{middle.suffix}"
    shutil.copy(middle, renamed)
    yield "a file renamed", [*rest, renamed]
    yield "a copy added", [*paths, renamed]
    yield "a foreign photo added", [*paths, foreign]
    with Image.open(middle) as image:
        image.convert("RGB").rotate(90, expand=True).save(folder / "rotated.png")
        image.convert("RGB").reduce(2).save(folder / "smaller.png")
    yield "a photo rotated", [*rest, folder / "rotated.png"]
    yield "a photo halved", [*rest, folder / "smaller.png"]


def changes(paths: Sequence[Path], foreign: Path, folder: Path, runs: Runs) -> dict[str, Any]:
    """Return what is kept under every kind of change; draws and seeds are averaged."""
    whole = runs.alone("whole", paths)
    found = defaultdict(list)
    for draw in range(N_DRAWS):
        left = np.random.default_rng(draw).permutation(len(paths))[round(SHARE * len(paths)) :]
        part = runs.alone(f"part-{draw}", [paths[i] for i in sorted(left)])
        found["2 % removed"].append(compare(runs, whole, part))
        found["2 % added"].append(compare(runs, part, whole))
    for seed in SEEDS:
        found["another seed"].append(compare(runs, whole, runs.alone(f"seed-{seed}", paths, seed)))
    for title, files in edits(paths, foreign, folder / "edited"):
        found[title].append(compare(runs, whole, runs.alone(title.replace(" ", "-"), files)))
    return found


def table(found: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    return [
        {"change": title}
        | {key: round(float(np.mean([row[key] for row in rows])), 1) for key in rows[0]}
        for title, rows in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of photographs")
    parser.add_argument("-k", default="auto", help="number of clusters, or 'folders' for theirs")
    parser.add_argument("--model", default="mini", help="name for load_encoder (default: mini)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = setting("scikit-learn")
    every = {folder: scan_images(folder).files for folder in arguments.folders}
    for folder, following in zip(every, [*list(every)[1:], next(iter(every))], strict=True):
        n_folders = len({path.parent for path in every[folder]})
        k = {"auto": "auto", "folders": n_folders}.get(arguments.k) or int(arguments.k)
        with TemporaryDirectory() as place:
            runs = Runs(Path(place), k, arguments.model)
            found = changes(every[folder], every[following][0], Path(place), runs)
        result[f"{folder.name}: {len(every[folder])} images, k = {k}"] = table(found)
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
