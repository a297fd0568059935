"""What is promised about kills, damage, attacks and full disks: tried, survived, lost.

Run it with ``python benchmarks/faults.py [KIND ...]`` where the tests' packages are installed. The
campaigns are those of ``tests/faults``, of which the suite runs a short form. All are
deterministic, but for the moments of kills. ``--share 0.1`` tries a tenth. Full disks need the
right to mount a file system.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _setting import print_result, setting

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "faults"))

import cluster_attacks
import disk_attacks
import image_attacks
import kill_attacks
import memory_attacks
import prune_attacks
import runs_attacks
import scene as scenes
import store_attacks
from tally import Tally

Campaign = Callable[[Path, int], "Tally | None"]


def campaigns(scene: scenes.Scene) -> dict[str, tuple[int, Campaign]]:
    """Return every kind of attack: how many to try (of some: per file, or at most), and how."""
    return {
        "kills": (200, lambda folder, n: kill_attacks.attack_by_killing(folder, scene, n)),
        "updates": (60, lambda folder, n: kill_attacks.attack_update(folder, scene, n)),
        "mutants": (2000, lambda folder, n: image_attacks.attack_with_mutants(folder, n)),
        "bombs": (1, lambda folder, n: image_attacks.attack_with_bombs(folder)),
        "run-bits": (40, lambda folder, n: runs_attacks.flipped_bits(folder, n)),
        "run-cuts": (8, lambda folder, n: runs_attacks.cut_files(folder, n)),
        "run-columns": (10_000, lambda folder, n: runs_attacks.crafted_columns(folder, n)),
        "run-arrays": (10_000, lambda folder, n: runs_attacks.crafted_arrays(folder, n)),
        "run-manifests": (10_000, lambda folder, n: runs_attacks.crafted_manifests(folder, n)),
        "run-links": (10_000, lambda folder, n: runs_attacks.special_files(folder, n)),
        "run-paths": (10_000, lambda folder, n: runs_attacks.stolen_paths(folder, n)),
        "run-exits": (500, lambda folder, n: runs_attacks.clean_exits(folder, n)),
        "store": (40, lambda folder, n: store_attacks.attack_store(folder, n)),
        "old-store": (
            20,
            lambda folder, n: store_attacks.attack_store(
                folder, n, write=store_attacks.write_old_store
            ),
        ),
        "prune": (1, lambda folder, n: prune_attacks.attack_by_pruning(folder, scene)),
        "removal": (1, lambda folder, n: prune_attacks.attack_by_removal(folder, scene)),
        "file-size": (30, lambda folder, n: disk_attacks.attack_by_file_size(folder, scene, n)),
        "full-disk": (30, lambda folder, n: disk_attacks.attack_by_full_disk(folder, scene, n)),
        "workers": (1000, lambda folder, n: cluster_attacks.attack_workers(folder, n)),
        "schedulers": (6, lambda folder, n: cluster_attacks.attack_schedulers(folder, n)),
        "clients": (12, lambda folder, n: cluster_attacks.attack_clients(folder, n)),
        "memory": (1, lambda folder, n: memory_attacks.attack_by_address_space(folder, scene)),
    }


def rows(kinds: list[str], share: float) -> Iterator[dict[str, Any]]:
    with TemporaryDirectory() as place:
        scene = scenes.make_scene(Path(place) / "scene")
        for name, (size, attack) in campaigns(scene).items():
            if kinds and name not in kinds:
                continue
            start = time.perf_counter()
            with scenes.quick_folder() as folder:
                tally = attack(folder, max(1, round(size * share)))
            if tally is None:
                print(f"{name} is left out: it needs the right to mount a file system.")
                continue
            for harm in tally.harm:
                print(f"{name}: {harm}", file=sys.stderr)
            yield {
                "kind": name,
                "attack": tally.kind,
                "tried": tally.tried,
                "survived": tally.survived,
                "lost": tally.lost,
                "s": round(time.perf_counter() - start),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kinds of attack (default: all)")
    parser.add_argument("--share", type=float, default=1.0, help="share of attacks to try")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    result = setting("pyarrow", "pillow")
    found = []
    for row in rows(arguments.kinds, arguments.share):
        print(row, file=sys.stderr, flush=True)
        found.append(row)
    result["Attacks"] = found
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
