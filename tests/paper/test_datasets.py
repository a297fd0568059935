from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nouncut.errors import InputError
from nouncut.images.hashing import content_hash
from nouncut.paper.datasets.catalog import KNOWN, load_dataset
from nouncut.paper.datasets.cifar_pickles import read_batch
from nouncut.paper.datasets.dataset import CentreCrop, FileImages, PixelImages
from nouncut.paper.datasets.dataset_files import packaged_lines
from nouncut.paper.datasets.pixel_files import cifar_superclasses
from nouncut.paper.published import published_values
from nouncut.words.wordnet import load_wordnet

TEN = packaged_lines("imagenet-10.txt")
DOGS = packaged_lines("imagenet-dogs.txt")


def check(dataset, n_train, n_test):
    """Every image can be opened and has a key of its own, every label is a class."""
    assert (len(dataset.train), len(dataset.test)) == (n_train, n_test)
    for source in (dataset.train, dataset.test):
        assert len({source.key(i) for i in range(len(source))}) > 1 or len(source) == 1
        assert all(source.open(i).mode == "RGB" for i in range(len(source)))
        assert source.stamp() == source.stamp()
    assert dataset.labels.shape == (n_test,)
    assert 0 <= dataset.labels.min() <= dataset.labels.max() < len(dataset.class_names)


def test_cifar10_is_read_from_its_binary_files(tmp_path, make):
    make.cifar10(tmp_path)
    dataset = load_dataset("CIFAR10", tmp_path)
    check(dataset, 100, 60)
    assert dataset.name == "CIFAR-10"
    assert dataset.class_names[3] == "cat"
    assert dataset.labels[:12].tolist() == [*range(10), 0, 1]
    pixels = np.asarray(dataset.test.open(0))
    assert pixels.shape == (32, 32, 3)
    # Class 0 is red in the made files.
    assert pixels[..., 0].mean() > pixels[..., 1].mean()
    raw = np.fromfile(tmp_path / "cifar-10-batches-bin/test_batch.bin", dtype=np.uint8)
    assert pixels[2, 5, 1] == raw[1 + 1024 + 2 * 32 + 5]


def test_cifar10_is_read_from_pickles_as_from_binary_files(tmp_path, make):
    folder = make.cifar10_pickles(tmp_path)
    with open(folder / "test_batch", "rb") as file:
        official = pickle.load(file, encoding="latin-1")
    pickled = load_dataset("cifar-10", tmp_path)
    binary = load_dataset("cifar-10", tmp_path / "binary")
    check(pickled, 100, 60)
    assert pickled.labels.tolist() == binary.labels.tolist() == official["labels"]
    assert pickled.class_names == binary.class_names
    # The same images have the same features in the store.
    assert [pickled.test.key(i) for i in range(60)] == [binary.test.key(i) for i in range(60)]
    raw = official["data"].reshape(-1, 3, 32, 32)[7]
    np.testing.assert_array_equal(np.asarray(pickled.test.open(7)), raw.transpose(1, 2, 0))
    assert pickled.test.path(3).name == "image 3"


@pytest.mark.parametrize("kind", ["cifar100", "cifar100_pickles"])
def test_cifar100_has_fine_and_coarse_classes(tmp_path, make, kind):
    getattr(make, kind)(tmp_path)
    fine, coarse = load_dataset("cifar-100", tmp_path), load_dataset("cifar-20", tmp_path)
    check(fine, 9, 6)
    assert fine.labels.tolist() == [4, 1, 81, 4, 1, 81]
    assert [fine.class_names[i] for i in (4, 1, 81)] == ["beaver", "aquarium fish", "streetcar"]
    assert coarse.labels.tolist() == [0, 1, 19, 0, 1, 19]
    assert len(fine.class_names) == 100


class Attack:
    """Runs a function when it is unpickled."""

    def __init__(self, mark):
        self._mark = str(mark)

    def __reduce__(self):
        return open, (self._mark, "w")


@pytest.mark.parametrize(
    "content",
    [
        lambda mark: pickle.dumps({"data": Attack(mark), "labels": [1]}, 2),
        lambda mark: pickle.dumps({"data": np.zeros((2, 3072)), "labels": [1, 2]}, 2),
        lambda mark: pickle.dumps({"labels": [1]}, 2),
        lambda mark: b"",
    ],
)
def test_no_code_of_a_pickle_is_run(tmp_path, make, content):
    folder = make.cifar10_pickles(tmp_path)
    (folder / "test_batch").write_bytes(content(tmp_path / "mark"))
    with pytest.raises(InputError, match=r"test_batch.*Unpack the archive again"):
        load_dataset("cifar-10", tmp_path)
    assert not (tmp_path / "mark").exists()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_pickles_give_an_error_or_images(tmp_path_factory, make, data):
    whole = bytearray(make.two_pickled_images())
    at = data.draw(st.integers(0, len(whole) - 1).filter(lambda i: i < 200 or i > 6200))
    whole[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "test_batch"
    path.write_bytes(whole[: data.draw(st.integers(at, len(whole)))])
    try:
        batch = read_batch(path)
    except InputError:
        return
    assert batch["data"].shape[1] == 3072
    assert all(len(numbers) == len(batch["data"]) for numbers in batch.values())


def test_a_file_that_was_cut_short_is_refused(tmp_path, make):
    path = make.cifar10(tmp_path) / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="Download it again"):
        load_dataset("cifar-10", tmp_path)


def test_cifar20_has_the_superclasses_of_cifar100(tmp_path, make):
    make.cifar100(tmp_path)
    dataset = load_dataset("cifar-20", tmp_path)
    check(dataset, 9, 6)
    assert dataset.labels.tolist() == [0, 1, 19, 0, 1, 19]
    assert dataset.class_names[19] == "vehicles 2"


def test_cifar20_merges_the_folders_of_a_hundred_classes(tmp_path, make):
    for part in ("train", "test"):
        make.folders(tmp_path / "CIFAR-20" / part, "oak_tree", "pine_tree", "wolf", n=1)
    dataset = load_dataset("cifar-20", tmp_path)
    assert dataset.class_names == ("trees", "large carnivores")
    assert dataset.labels.tolist() == [0, 0, 1]


def test_the_twenty_superclasses_hold_a_hundred_classes():
    fine = [name for names in cifar_superclasses().values() for name in names]
    assert len(cifar_superclasses()) == 20
    assert len(set(fine)) == 100
    assert {len(names) for names in cifar_superclasses().values()} == {5}


def test_stl10_runs_down_the_columns(tmp_path, make):
    make.stl10(tmp_path)
    dataset = load_dataset("stl-10", tmp_path)
    assert (len(dataset.train), len(dataset.test)) == (2, 3)
    assert dataset.labels.tolist() == [0, 1, 2]
    image = dataset.test.open(0)
    assert image.getpixel((10, 5)) == (0, 0, 0)
    assert image.getpixel((90, 5)) == (255, 0, 0)


def test_dtd_takes_its_first_split(tmp_path, make):
    make.dtd(tmp_path)
    dataset = load_dataset("dtd", tmp_path)
    check(dataset, 4, 2)
    assert dataset.class_names == ("banded", "polka dotted")


def test_dtd_may_be_unpacked_by_torchvision(tmp_path, make):
    make.dtd(tmp_path / "dtd")
    check(load_dataset("dtd", tmp_path), 4, 2)


def test_ucf101_takes_middle_frames(tmp_path, make):
    make.ucf101(tmp_path)
    dataset = load_dataset("ucf-101", tmp_path)
    check(dataset, 2, 2)
    assert dataset.class_names == ("apply eye makeup", "yo yo")


def test_ucf101_says_that_videos_are_not_read(tmp_path, make):
    folder = make.ucf101(tmp_path)
    (folder / "midframes/YoYo/v_YoYo_g01_c01.jpg").rename(tmp_path / "elsewhere.avi")
    with pytest.raises(InputError, match=r"v_YoYo_g01_c01.*ffmpeg"):
        load_dataset("ucf-101", tmp_path)


@pytest.mark.parametrize("flat", [False, True])
def test_imagenet_and_its_subsets(tmp_path, make, flat):
    synsets = sorted({*TEN, *DOGS, "n01440764"})
    make.imagenet(tmp_path, *synsets, flat=flat)
    whole = load_dataset("imagenet", tmp_path)
    check(whole, 2 * len(synsets), len(synsets))
    assert sorted(whole.labels) == list(range(len(synsets)))
    assert whole.class_names[0] == "tench, Tinca tinca"
    for name, only in (("imagenet-10", TEN), ("imagenet-dogs", DOGS)):
        part = load_dataset(name, tmp_path)
        check(part, 2 * len(only), len(only))
        assert len(part.class_names) == len(only)
    assert load_dataset("imagenet-dogs", tmp_path).class_names[-1] == "chow, chow chow"


def test_a_flat_validation_set_has_the_devkits_classes(tmp_path, make):
    synsets = ["n02085936", "n02690373", "n07747607"]
    make.imagenet(tmp_path, *synsets, flat=True)
    dataset = load_dataset("imagenet-1k", tmp_path)
    # The images were written in the order of their synsets.
    assert dataset.labels.tolist() == [0, 1, 2]
    assert dataset.class_names[1] == "airliner"


@pytest.mark.parametrize("root", ["", "imagenet", "imagenet-object-localization-challenge"])
def test_imagenet_is_read_as_kaggle_has_it(tmp_path, make, root):
    make.kaggle_imagenet(tmp_path / root, *TEN)
    dataset = load_dataset("imagenet-1k", tmp_path)
    check(dataset, 20, 10)
    assert dataset.labels.tolist() == [sorted(TEN).index(synset) for synset in TEN]
    assert len(load_dataset("imagenet-10", tmp_path).class_names) == 10


def test_an_image_that_kaggles_list_lacks_is_named(tmp_path, make):
    folder = make.kaggle_imagenet(tmp_path, *TEN)
    make.picture(folder / "val/ILSVRC2012_val_00099999.JPEG")
    with pytest.raises(InputError, match=r"LOC_val_solution.csv.*00099999.JPEG"):
        load_dataset("imagenet-1k", tmp_path)


def test_a_flat_validation_set_needs_its_classes(tmp_path, make):
    folder = make.imagenet(tmp_path, *TEN, flat=True)
    (folder / "ILSVRC2012_devkit_t12").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"ILSVRC2012_devkit_t12 or LOC_val_solution.csv"):
        load_dataset("imagenet-1k", tmp_path)


def test_imagenet_is_cut_as_usual(tmp_path, make):
    make.imagenet(tmp_path, *TEN)
    dataset = load_dataset("imagenet-10", tmp_path)
    assert dataset.test.open(0).size == (224, 224)
    # Features of the whole image must not be taken for those of its centre.
    assert dataset.test.key(0) != content_hash(dataset.test.path(0))


def test_the_centre_is_cut_after_scaling():
    ramp = np.repeat(np.arange(200, dtype=np.uint8)[None, :], 100, axis=0)
    image = Image.fromarray(np.dstack([ramp] * 3))
    cut = np.asarray(CentreCrop(256, 224)(image))
    assert cut.shape == (224, 224, 3)
    # 100 x 200 becomes 256 x 512, of which columns 144 to 367 are kept.
    assert cut[112, 0, 0] == pytest.approx(144 * 200 / 512, abs=1.5)
    assert cut[112, -1, 0] == pytest.approx(367 * 200 / 512, abs=1.5)


def test_the_subsets_are_classes_of_imagenet():
    from importlib.resources import files

    all_synsets = files("nouncut.models").joinpath("data/imagenet-1k-synsets.txt").read_text()
    assert set(TEN) | set(DOGS) <= set(all_synsets.split())
    assert (len(set(TEN)), len(set(DOGS))) == (10, 15)
    dog = {"n02084071"}
    for synset in DOGS:
        ancestors, level = set(), {synset}
        while level:
            ancestors |= level
            level = {up for one in level for up in load_wordnet()[one].hypernyms} - ancestors
        assert dog <= ancestors


def test_imagenet_under_domain_shift(tmp_path, make):
    make.folders(tmp_path / "ImageNet-C/fog/3", *TEN[:2])
    make.folders(tmp_path / "imagenetv2-matched-frequency-format-val", "0", "404")
    make.folders(tmp_path / "sketch", *TEN[:3])
    corrupted = load_dataset("imagenet-c/fog/3", tmp_path)
    check(corrupted, 4, 4)
    assert corrupted.train is corrupted.test
    assert load_dataset("imagenet-v2", tmp_path).class_names == ("tench, Tinca tinca", "airliner")
    assert len(load_dataset("imagenet-sketch", tmp_path).class_names) == 3
    with pytest.raises(InputError, match="imagenet-c/fog/3"):
        load_dataset("imagenet-c", tmp_path)
    with pytest.raises(InputError, match="should hold fog/9"):
        load_dataset("imagenet-c/fog/9", tmp_path)
    with pytest.raises(InputError, match="Write it as"):
        load_dataset("imagenet-c/../3", tmp_path)


def test_corrupted_images_are_neither_scaled_nor_cut(tmp_path, make):
    path = tmp_path / "ImageNet-C/fog/3" / TEN[0] / "ILSVRC2012_val_00000001.JPEG"
    make.picture(path, size=(224, 224))
    make.folders(tmp_path / "ImageNet-C/fog/3", TEN[1])
    images = load_dataset("imagenet-c/fog/3", tmp_path).test
    number = images.paths.index(path)
    np.testing.assert_array_equal(np.asarray(images.open(number)), np.asarray(Image.open(path)))
    assert images.key(number) == content_hash(path)


@pytest.mark.parametrize("name", ["imagenet-a", "imagenet-r"])
def test_imagenet_a_and_r_have_folders_of_synsets(tmp_path, make, name):
    make.folders(tmp_path / name, *TEN[:3])
    (tmp_path / name / "README.txt").write_text("200 classes")
    dataset = load_dataset(name, tmp_path)
    check(dataset, 6, 6)
    assert dataset.train is dataset.test
    assert dataset.test.open(0).size == (224, 224)


def test_places365_takes_its_validation_images(tmp_path, make):
    folder = make.places(tmp_path)
    dataset = load_dataset("places365", tmp_path)
    check(dataset, 3, 3)
    assert dataset.labels.tolist() == [2, 0, 1]
    assert dataset.class_names == ("airfield", "airport terminal", "apartment building outdoor")
    make.lines(folder / "places365_val.txt", "Places365_val_00000001.jpg 365")
    with pytest.raises(InputError, match="'365'"):
        load_dataset("places365", tmp_path)


def test_aircraft(tmp_path, make):
    make.aircraft(tmp_path)
    dataset = load_dataset("aircraft", tmp_path)
    check(dataset, 2, 2)
    assert dataset.labels.tolist() == [1, 0]
    assert dataset.class_names == ("707-320", "F/A-18")


def test_food(tmp_path, make):
    make.food(tmp_path)
    dataset = load_dataset("food-101", tmp_path)
    check(dataset, 2, 2)
    assert dataset.class_names == ("apple pie", "waffles")


def test_flowers(tmp_path, make):
    make.flowers(tmp_path)
    dataset = load_dataset("flowers", tmp_path)
    check(dataset, 2, 3)
    assert [dataset.class_names[label] for label in dataset.labels] == [
        "blackberry lily",
        "pink primrose",
        "passion flower",
    ]


def test_pets(tmp_path, make):
    make.pets(tmp_path)
    dataset = load_dataset("pets", tmp_path)
    check(dataset, 2, 2)
    assert dataset.labels.tolist() == [1, 0]
    assert dataset.class_names == ("Abyssinian", "american bulldog")


def test_cars(tmp_path, make):
    make.cars(tmp_path)
    dataset = load_dataset("cars", tmp_path)
    check(dataset, 2, 2)
    assert dataset.labels.tolist() == [1, 0]
    assert dataset.class_names[1] == "smart fortwo 2012"


def test_a_source_that_has_moved_is_said_so(tmp_path):
    with pytest.raises(InputError, match=r"page.*is gone.*https://github.com"):
        load_dataset("cars", tmp_path)


@pytest.mark.parametrize("name", list(KNOWN))
def test_missing_files_come_with_their_source(tmp_path, name):
    with pytest.raises(InputError, match="https://"):
        load_dataset(name, tmp_path)
    with pytest.raises(InputError, match="`data_root`"):
        load_dataset(name)


@pytest.mark.parametrize("name", [name for name in KNOWN if name[:10] != "imagenet-c"])
def test_an_empty_folder_is_not_a_data_set(tmp_path, name):
    (tmp_path / KNOWN[name].folders[0]).mkdir()
    with pytest.raises(InputError, match="https://"):
        load_dataset(name, tmp_path)


@pytest.mark.parametrize("name", ["stl-10", "cifar-10", "dtd", "ucf-101", "food", "pets", "cars"])
def test_an_image_folder_with_a_split_will_do(tmp_path, make, name):
    place = tmp_path / KNOWN[name].folders[0]
    make.folders(place / "train", "a", "b")
    make.folders(place / "test", "a", "b", n=1)
    dataset = load_dataset(name, tmp_path)
    check(dataset, 4, 2)
    assert dataset.name == KNOWN[name].title


def test_the_paper_knows_every_data_set():
    published = {value.dataset for value in published_values()} - {"Average"}
    beside = {"CIFAR-100", "ImageNet-A", "ImageNet-R", "Places365"}
    assert {known.title for known in KNOWN.values()} == published | beside


def test_any_folder_per_class(tmp_path, make):
    folder = make.folders(tmp_path / "my photos", "Oat-Milk", "<script>", "naïve café")
    (folder / ".hidden").mkdir()
    (folder / "Oat-Milk/notes.txt").write_text("not an image")
    dataset = load_dataset(str(folder))
    check(dataset, 6, 6)
    assert dataset.train is dataset.test
    assert dataset.name == "my photos"
    assert dataset.class_names == ("<script>", "Oat Milk", "naïve café")
    # Keys are those of any other run on these files.
    assert dataset.test.key(0) == content_hash(dataset.test.path(0))


def test_a_folder_with_a_known_name_needs_no_root(tmp_path, make, monkeypatch):
    make.folders(tmp_path / "pets", "cat", "dog")
    monkeypatch.chdir(tmp_path)
    assert load_dataset("pets").class_names == ("cat", "dog")


def test_what_is_no_data_set(tmp_path, make):
    with pytest.raises(InputError, match="cifar-10"):
        load_dataset("no such thing", tmp_path)
    make.folders(tmp_path / "one", "cat")
    with pytest.raises(InputError, match="a folder per class"):
        load_dataset(str(tmp_path / "one"))
    (tmp_path / "one/empty").mkdir()
    with pytest.raises(InputError, match="no images"):
        load_dataset(str(tmp_path / "one"))


def test_a_listed_image_that_is_missing_is_named(tmp_path, make):
    folder = make.dtd(tmp_path)
    (folder / "images/banded/banded_2.jpg").unlink()
    with pytest.raises(InputError, match=r"banded_2\.jpg"):
        load_dataset("dtd", tmp_path).test.stamp()


def test_the_stamp_changes_with_a_file(tmp_path, make):
    make.folders(tmp_path, "a", "b")
    source = FileImages(tuple(sorted(tmp_path.rglob("*.png"))))
    before = source.stamp()
    make.picture(source.path(0), size=(50, 20))
    assert source.stamp() != before


def test_images_of_several_files_are_counted_through(tmp_path):
    for name, values in (("a.bin", (1, 2)), ("b.bin", (3,))):
        (tmp_path / name).write_bytes(b"".join(bytes([v, v, v]) for v in values))
    source = PixelImages((tmp_path / "a.bin", tmp_path / "b.bin"), (3, 1, 1))
    assert [source.open(i).getpixel((0, 0))[0] for i in range(3)] == [1, 2, 3]
    assert source.path(2).name == "image 0"
    with pytest.raises(IndexError):
        source.open(3)
