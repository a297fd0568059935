from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut.errors import InputError, ParameterError
from nouncut.paper.bench.columns import folder_titles, load_columns, load_single
from nouncut.paper.tables.score_table import Column

CLASSES = ("n01440764", "n01443537", "n01484850")


@pytest.fixture(scope="module")
def root(tmp_path_factory, make):
    """Return ImageNet, two corruptions of ImageNet-C, ImageNet-V2 and ImageNet-Sketch."""
    root = tmp_path_factory.mktemp("root")
    make.imagenet(root, *CLASSES)
    for part in ("gaussian_noise/1", "fog/3", "saturate/2"):
        make.folders(root / "ImageNet-C" / part, *CLASSES)
    make.folders(root / "imagenetv2-matched-frequency-format-val", "0", "1", "2")
    make.folders(root / "sketch", *CLASSES)
    return root


def titles(columns):
    return [one.column.title for one in columns]


def parts(column):
    return [dataset.name for dataset in column.load()]


def test_folders_of_one_name_are_told_apart(tmp_path, make, monkeypatch):
    for place in ("a", "b"):
        make.folders(tmp_path / place / "photos", "cat", "dog")
    make.folders(tmp_path / "b" / "Average", "cat", "dog")
    monkeypatch.chdir(tmp_path)
    columns = load_columns(["a/photos", "b/photos", "b/Average", "./a/../a/photos/"])
    assert titles(columns) == ["a/photos", "b/photos", "b/Average"]
    first, second = (next(one.load()).test.path(0) for one in columns[:2])
    assert (first.parts[-4:-2], second.parts[-4:-2]) == (("a", "photos"), ("b", "photos"))
    assert titles(load_columns(["b/photos"])) == ["photos"]


PATHS = st.lists(st.sampled_from(["a", "b", "photos", "Average"]), min_size=1, max_size=4)


@given(st.lists(PATHS, min_size=1, max_size=6, unique_by=tuple))
def test_titles_of_folders_are_distinct_and_short(parts):
    folders = [Path("/", *one) for one in parts]
    titles = folder_titles(folders, ["Average"])
    assert len({*titles, "Average"}) == len(folders) + 1
    for folder, title in zip(folders, titles, strict=True):
        assert str(folder).endswith(title)
        if [one.name for one in folders].count(folder.name) == 1 and folder.name != "Average":
            assert title == folder.name


def test_corruptions_of_imagenet_c_are_data_sets_of_their_own(root):
    columns = load_columns(["imagenet-c", "imagenet-c/fog/3", "imagenet-c/gaussian_noise/1"], root)
    assert [one.column for one in columns] == [
        Column("ImageNet-C/gaussian_noise/1", "ImageNet-C"),
        Column("ImageNet-C/fog/3", None),
    ]
    assert [parts(one) for one in columns] == [
        ["ImageNet-C/gaussian_noise/1"],
        ["ImageNet-C/fog/3"],
    ]


def test_all_of_imagenet_c_is_one_column(root):
    (column,) = load_columns(["imagenet-c/all"], root)
    # Saturation is one of the extra corruptions.
    assert column.column == Column("ImageNet-C (mean of 2 of 75)", None)
    assert parts(column) == ["ImageNet-C/gaussian_noise/1", "ImageNet-C/fog/3"]
    with pytest.raises(ParameterError, match=r"is 2 data sets. Name one: imagenet-c/gaussian"):
        load_single("imagenet-c/all", root)


def test_a_corruption_without_its_folders_is_loaded_as_it_is(tmp_path, make):
    make.folders(tmp_path / "ImageNet-C", *CLASSES)
    (column,) = load_columns(["imagenet-c"], tmp_path, "own")
    assert column.column == Column("ImageNet-C", "ImageNet-C")
    with pytest.raises(InputError, match=r"should hold gaussian_noise/1.*zenodo"):
        load_columns(["imagenet-c/all"], tmp_path)


@pytest.mark.parametrize("name", ["imagenet-c", "imagenet-c/fog/3", "imagenet-v2", "imagenet-s"])
def test_imagenets_training_images_choose_the_nouns_of_its_variants(root, name):
    (dataset,) = load_columns([name], root)[0].load()
    assert {dataset.train.path(i).parts[-3] for i in range(len(dataset.train))} == {"train"}
    assert len(dataset.train) == 2 * len(CLASSES)
    (own,) = load_columns([name], root, "own")[0].load()
    assert own.train is own.test
    assert load_single(name, root).train == dataset.train


def test_variants_share_the_training_images(root):
    columns = load_columns(["imagenet-c/all", "imagenet-v2", "imagenet-s"], root)
    datasets = [dataset for column in columns for dataset in column.load()]
    assert len(datasets) == 4
    assert len({id(dataset.train) for dataset in datasets}) == 1


def test_missing_training_images_have_a_remedy(tmp_path, make):
    make.folders(tmp_path / "sketch", *CLASSES)
    with pytest.raises(
        InputError, match=r"ImageNet-S.*ImageNet-1K is not in.*`shift_nouns` to own"
    ):
        load_columns(["imagenet-s"], tmp_path)
    assert len(load_columns(["imagenet-s"], tmp_path, "own")) == 1
