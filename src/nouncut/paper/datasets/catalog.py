"""The data sets that have a name here: their folders and official sources."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from nouncut.errors import InputError, printable_path
from nouncut.paper.datasets import imagenet, listed_images, pixel_files
from nouncut.paper.datasets.class_folders import Loader, load_folders
from nouncut.paper.datasets.class_prompts import with_clip_prompts
from nouncut.paper.datasets.dataset import Dataset
from nouncut.paper.datasets.dataset_files import need

_IMAGENET_FOLDERS = (
    "imagenet",
    "ImageNet-1K",
    "ILSVRC2012",
    "imagenet-1k",
    "imagenet-object-localization-challenge",
    "ILSVRC/Data/CLS-LOC",
)
_IMAGENET_SOURCE = (
    "https://image-net.org/download.php (ILSVRC2012: the training and validation images, unpacked "
    "into train/ and val/ with a folder per synset, or val/ flat beside ILSVRC2012_devkit_t12), or "
    "https://www.kaggle.com/c/imagenet-object-localization-challenge (ILSVRC/ beside "
    "LOC_val_solution.csv)"
)
_CIFAR100_SOURCE = (
    "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz (or cifar-100-python.tar.gz)"
)
_CIFAR_PROMPTS, _IMAGENET_PROMPTS = "cifar", "imagenet"


class KnownDataset(NamedTuple):
    """A data set of the paper, or one beside them; `prompts` is the key of CLIP's prompts."""

    title: str
    folders: tuple[str, ...]
    source: str
    load: Loader
    prompts: str | None = None


KNOWN: dict[str, KnownDataset] = {
    "stl-10": KnownDataset(
        "STL-10",
        ("stl10_binary", "STL-10"),
        "https://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
        pixel_files.load_stl10,
        "stl-10",
    ),
    "cifar-10": KnownDataset(
        "CIFAR-10",
        ("cifar-10-batches-bin", "cifar-10-batches-py", "CIFAR-10"),
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz (or cifar-10-python.tar.gz)",
        pixel_files.load_cifar10,
        _CIFAR_PROMPTS,
    ),
    "cifar-20": KnownDataset(
        "CIFAR-20",
        ("cifar-100-binary", "cifar-100-python", "CIFAR-20", "CIFAR-100"),
        _CIFAR100_SOURCE,
        pixel_files.load_cifar20,
    ),
    "cifar-100": KnownDataset(
        "CIFAR-100",
        ("cifar-100-binary", "cifar-100-python", "CIFAR-100"),
        _CIFAR100_SOURCE,
        pixel_files.load_cifar100,
        _CIFAR_PROMPTS,
    ),
    "imagenet-10": KnownDataset(
        "ImageNet-10",
        ("ImageNet-10", *_IMAGENET_FOLDERS),
        _IMAGENET_SOURCE,
        imagenet.load_imagenet10,
        _IMAGENET_PROMPTS,
    ),
    "imagenet-dogs": KnownDataset(
        "ImageNet-Dogs",
        ("ImageNet-Dogs", *_IMAGENET_FOLDERS),
        _IMAGENET_SOURCE,
        imagenet.load_imagenet_dogs,
        _IMAGENET_PROMPTS,
    ),
    "dtd": KnownDataset(
        "DTD",
        ("dtd", "DTD"),
        "https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz",
        listed_images.load_dtd,
        "dtd",
    ),
    "ucf-101": KnownDataset(
        "UCF-101",
        ("UCF-101", "UCF101", "ucf101"),
        "https://www.crcv.ucf.edu/data/UCF101.php (the videos, to take their middle frames from, "
        "and the train/test splits for action recognition)",
        listed_images.load_ucf101,
        "ucf-101",
    ),
    "imagenet-1k": KnownDataset(
        "ImageNet-1K",
        _IMAGENET_FOLDERS,
        _IMAGENET_SOURCE,
        imagenet.load_imagenet,
        _IMAGENET_PROMPTS,
    ),
    "imagenet-c": KnownDataset(
        "ImageNet-C",
        ("ImageNet-C", "imagenet-c"),
        "https://zenodo.org/records/2235448",
        imagenet.load_imagenet_c,
        _IMAGENET_PROMPTS,
    ),
    "imagenet-v2": KnownDataset(
        "ImageNet-V2",
        ("imagenetv2-matched-frequency-format-val", "ImageNet-V2", "imagenet-v2"),
        "https://huggingface.co/datasets/vaishaal/ImageNetV2",
        imagenet.load_imagenet_v2,
        _IMAGENET_PROMPTS,
    ),
    "imagenet-s": KnownDataset(
        "ImageNet-S",
        ("ImageNet-Sketch", "imagenet-sketch", "sketch", "ImageNet-S"),
        "https://github.com/HaohanWang/ImageNet-Sketch",
        imagenet.load_imagenet_sketch,
        _IMAGENET_PROMPTS,
    ),
    "imagenet-a": KnownDataset(
        "ImageNet-A",
        ("imagenet-a", "ImageNet-A"),
        "https://people.eecs.berkeley.edu/~hendrycks/imagenet-a.tar",
        imagenet.load_synset_folders,
        _IMAGENET_PROMPTS,
    ),
    "imagenet-r": KnownDataset(
        "ImageNet-R",
        ("imagenet-r", "ImageNet-R"),
        "https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar",
        imagenet.load_synset_folders,
        _IMAGENET_PROMPTS,
    ),
    "places-365": KnownDataset(
        "Places365",
        ("places365", "Places365", "places365_standard"),
        "https://github.com/CSAILVision/places365 links them (val_256.tar and "
        "filelist_places365-standard.tar)",
        listed_images.load_places,
    ),
    "aircraft": KnownDataset(
        "Aircraft",
        ("fgvc-aircraft-2013b", "Aircraft", "aircraft"),
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/",
        listed_images.load_aircraft,
        "aircraft",
    ),
    "food": KnownDataset(
        "Food",
        ("food-101", "Food-101", "Food"),
        "https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
        listed_images.load_food,
        "food",
    ),
    "flowers": KnownDataset(
        "Flowers",
        ("flowers-102", "Flowers-102", "Flowers"),
        "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/ (102flowers.tgz, imagelabels.mat and "
        "setid.mat)",
        listed_images.load_flowers,
        "flowers",
    ),
    "pets": KnownDataset(
        "Pets",
        ("oxford-iiit-pet", "Pets", "pets"),
        "https://www.robots.ox.ac.uk/~vgg/data/pets/",
        listed_images.load_pets,
        "pets",
    ),
    "cars": KnownDataset(
        "Cars",
        ("stanford-cars", "stanford_cars", "Cars", "cars"),
        "the authors' page, https://ai.stanford.edu/~jkrause/cars/car_dataset.html, is gone; "
        "https://github.com/pytorch/vision/issues/7545 tells where copies of its files are",
        listed_images.load_cars,
        "cars",
    ),
}
_ALIASES = {
    "imagenet": "imagenet-1k",
    "imagenet-sketch": "imagenet-s",
    "food-101": "food",
    "flowers-102": "flowers",
    "fgvc-aircraft": "aircraft",
    "oxford-pets": "pets",
    "stanford-cars": "cars",
    "places": "places-365",
}


def load_dataset(data: str, data_root: Path | None = None) -> Dataset:
    """Load a data set by name, or any folder with a folder per class."""
    name = find_name(data)
    if name is None or (data_root is None and Path(data).is_dir()):
        return _load_own(Path(data))
    known = KNOWN[name]
    if data_root is None:
        raise InputError(
            f"Where is {known.title}? Name the folder that holds it with `data_root`. Its official "
            f"files: {known.source}"
        )
    folder, inside = find_folder(known, data_root), _path_inside(data)
    try:
        dataset = known.load(need(folder, inside) if inside else folder, known.title)
    except InputError as error:
        raise InputError(
            f"{known.title} cannot be loaded. {error} Its official files: {known.source}"
        ) from error
    return with_clip_prompts(dataset, known.prompts) if known.prompts else dataset


def find_name(data: str) -> str | None:
    """Return the name of the data set that is meant, or None."""
    first = data.split("/")[0] if data.lower().startswith("imagenet-c/") else data
    for name in (*KNOWN, *_ALIASES):
        if _without_dashes(name) == _without_dashes(first):
            return _ALIASES.get(name, name)
    return None


def _without_dashes(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _path_inside(data: str) -> str:
    """Return the path after the name: "fog/3" of imagenet-c/fog/3."""
    parts = data.split("/")[1:]
    if any(part in ("", ".", "..") for part in parts):
        raise InputError(f"{data!r} is no data set. Write it as imagenet-c/fog/3.")
    return "/".join(parts)


def find_folder(known: KnownDataset, root: Path) -> Path:
    """Return the folder of a data set."""
    for folder in known.folders:
        if (root / folder).is_dir():
            return root / folder
    raise InputError(
        f"{known.title} is not in {printable_path(root)!r}: it should be in a folder "
        f"{' or '.join(known.folders)} there. Its official files: {known.source}"
    )


def _load_own(folder: Path) -> Dataset:
    if not folder.is_dir():
        raise InputError(
            f"{printable_path(folder)} is neither a folder nor a data set that has a name here "
            f"({', '.join(KNOWN)})."
        )
    return load_folders(folder, printable_path(folder.resolve().name))
