"""The embedded model on real photographs: the groups and names that anybody would give."""

from __future__ import annotations

import pytest

from nouncut import cluster_images
from nouncut.cli.demo import demo_images
from nouncut.store.store import FeatureStore

# Numbers of photographs that the demo's package brings.
BIRDS = {
    "owl": (19, 215, 622, 221, 45, 121, 360, 526),
    "hummingbird": (632, 248, 430, 235, 125, 567, 111, 601),
    "penguin": (331, 11, 247, 201, 518, 37, 165, 18),
    "eagle": (81, 537, 350, 566, 525),
}
WORDS = ("gull", "owl", "duck", "penguin", "swan", "eagle", "parrot", "hummingbird", "ostrich")


@pytest.mark.parametrize("compare", ["looks", "words"])
def test_birds_are_grouped_and_named(tmp_path, compare):
    folder = demo_images().paths[0].parent
    kinds = {folder / f"s{number:04}.jpg": kind for kind in BIRDS for number in BIRDS[kind]}
    run = cluster_images(
        sorted(kinds),
        len(BIRDS),
        model="mini",
        vocabulary=WORDS,
        compare=compare,
        store=FeatureStore(tmp_path / "store"),
        output=tmp_path / "run",
    )
    right = [
        run.names[label] == kinds[path] for path, label in zip(run.paths(), run.labels, strict=True)
    ]
    assert set(run.names) == set(BIRDS)
    assert all(right), [path.name for path, ok in zip(run.paths(), right, strict=True) if not ok]
