from __future__ import annotations

import json

import numpy as np
import pytest

from nouncut.compute.rows import unit_rows
from nouncut.errors import InputError
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.bench.noun_centers import filter_centers, kept_centers
from nouncut.words.filters import select_nouns

# Training images and classes; the centres that TAC's code lists, and GradNorm's.
PUBLISHED = {
    "CIFAR-10": (50_000, 10, 167, 250),
    "CIFAR-20": (50_000, 20, 167, 200),
    "STL-10": (5_000, 10, 17, 30),
    "ImageNet-10": (13_000, 10, 43, 50),
    "ImageNet-Dogs": (19_500, 15, 65, 50),
    "DTD": (3_760, 47, 141, 180),
    "UCF-101": (9_537, 101, 303, 303),
    "ImageNet-1K": (1_281_167, 1_000, 4_271, 2_000),
}


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_every_filter_has_its_published_number_of_centers(dataset):
    n_images, n_clusters, tac, gradnorm = PUBLISHED[dataset]
    assert filter_centers("tac", dataset, n_images, n_clusters) == tac
    assert filter_centers("gradnorm", dataset, n_images, n_clusters) == gradnorm


def test_other_data_sets_have_tacs_rule_for_both_filters():
    for method in ("tac", "gradnorm"):
        assert filter_centers(method, "my photos", 900, 10) == 30
        assert filter_centers(method, "cifar-10", 20, 10) == 20
    assert filter_centers("gradnorm", "imagenet-c/fog/3", 1_281_167, 1_000) == 2_000


def test_filters_and_vocabularies_share_centers(setup, colours):
    encoded = EncodedDataset(colours, setup)
    encoded.problem(0, with_gradnorm=True)
    encoded.problem(0, "without class names")
    (path,) = (setup.output / "centers").iterdir()
    assert len(list((setup.output / "nouns").iterdir())) == 3
    kept = np.load(path)
    assert kept.shape == (9, 8)
    encoded.problem(1)
    assert len(list((setup.output / "centers").iterdir())) == 2
    # The file is what nouns are chosen by.
    for nouns in (setup.output / "nouns").iterdir():
        nouns.unlink()
    np.save(path, kept[:1])
    encoded.problem(0)
    (chosen,) = (json.loads(p.read_text())["nouns"] for p in (setup.output / "nouns").iterdir())
    assert chosen == [setup.words[i] for i in select_nouns(kept[:1], setup.candidates)]


def test_images_without_direction_are_left_out(tmp_path):
    images = unit_rows(np.random.default_rng(0).normal(size=(50, 6)))
    centers = kept_centers(tmp_path / "a" / "1.npy", lambda: images, 5, 0)
    padded = np.vstack([images, np.zeros((9, 6))])
    np.testing.assert_array_equal(kept_centers(tmp_path / "2.npy", lambda: padded, 5, 0), centers)
    with pytest.raises(InputError, match="features of all images are zero"):
        kept_centers(tmp_path / "3.npy", lambda: np.zeros((4, 6)), 2, 0)
