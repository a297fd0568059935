"""ImageNet-1K, its subsets, and its variants under domain shift."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from nouncut.errors import printable_path
from nouncut.paper.datasets.dataset import CentreCrop, Dataset, DatasetFilesError, FileImages
from nouncut.paper.datasets.finding import images_in, lines, need, packaged_lines, subfolders
from nouncut.paper.datasets.folders import class_name, load_folders, read_classes

# As TAC prepares ImageNet; images of the other data sets are scaled to the model's own size.
IMAGENET_CROP = CentreCrop(shortest=256, side=224)
_DEVKIT = "ILSVRC2012_devkit_t12"


def load_imagenet(folder: Path) -> Dataset:
    """Load ImageNet-1K.

    Parameters
    ----------
    folder : Path
        With ``train`` and ``val``, each with a folder per synset. ``val`` may also be flat, as it
        is unpacked; the labels are then read from ``ILSVRC2012_devkit_t12`` beside it.

    Returns
    -------
    Dataset
        1,281,167 images to choose nouns by and 50,000 to cluster.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.imagenet import load_imagenet
    >>> load_imagenet(Path("imagenet"))  # doctest: +SKIP
    """
    return _load(folder, "ImageNet-1K", None)


def load_imagenet10(folder: Path) -> Dataset:
    """Load the ten classes of ImageNet-10.

    Parameters
    ----------
    folder : Path
        ImageNet-1K as for `load_imagenet`, or a folder of the same form with these classes only.

    Returns
    -------
    Dataset
        13,000 images to choose nouns by and 500 to cluster.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.imagenet import load_imagenet10
    >>> load_imagenet10(Path("imagenet"))  # doctest: +SKIP
    """
    return _load(folder, "ImageNet-10", packaged_lines("imagenet-10.txt"))


def load_imagenet_dogs(folder: Path) -> Dataset:
    """Load the fifteen breeds of ImageNet-Dogs.

    Parameters
    ----------
    folder : Path
        ImageNet-1K as for `load_imagenet`, or a folder of the same form with these classes only.

    Returns
    -------
    Dataset
        19,500 images to choose nouns by and 750 to cluster.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.imagenet import load_imagenet_dogs
    >>> load_imagenet_dogs(Path("imagenet"))  # doctest: +SKIP
    """
    return _load(folder, "ImageNet-Dogs", packaged_lines("imagenet-dogs.txt"))


def load_imagenet_c(folder: Path) -> Dataset:
    """Load one corruption of ImageNet-C at one severity.

    Parameters
    ----------
    folder : Path
        Such as ``ImageNet-C/fog/3``: a folder per synset. The paper does not say which it used.

    Returns
    -------
    Dataset
        50,000 images, which nouns are chosen by as well.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.imagenet import load_imagenet_c
    >>> load_imagenet_c(Path("ImageNet-C/fog/3"))  # doctest: +SKIP
    """
    inside = [
        f"{kind.name}/{level.name}" for kind in subfolders(folder) for level in subfolders(kind)
    ]
    if inside:
        raise DatasetFilesError(
            f"{printable_path(folder)} has {len(inside)} corruptions and severities. Name one: "
            f"imagenet-c/{inside[0]}"
        )
    return load_folders(folder, "ImageNet-C", crop=IMAGENET_CROP)


def load_imagenet_v2(folder: Path) -> Dataset:
    """Load ImageNet-V2.

    Parameters
    ----------
    folder : Path
        Such as ``imagenetv2-matched-frequency-format-val``: folders 0 to 999, in the order of
        ImageNet's synsets.

    Returns
    -------
    Dataset
        10,000 images, which nouns are chosen by as well.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.imagenet import load_imagenet_v2
    >>> load_imagenet_v2(Path("imagenetv2-matched-frequency-format-val"))  # doctest: +SKIP
    """
    images, labels, names = read_classes(folder, IMAGENET_CROP)
    synsets = _synsets()
    renamed = tuple(class_name(synsets[int(n)]) if n.isdecimal() else n for n in names)
    return Dataset("ImageNet-V2", images, images, labels, renamed)


def load_imagenet_sketch(folder: Path) -> Dataset:
    """Load ImageNet-Sketch, which the paper's tables call ImageNet-S.

    Parameters
    ----------
    folder : Path
        With a folder per synset, in ``sketch`` or at once.

    Returns
    -------
    Dataset
        50,889 images, which nouns are chosen by as well.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.imagenet import load_imagenet_sketch
    >>> load_imagenet_sketch(Path("sketch"))  # doctest: +SKIP
    """
    inside = folder / "sketch"
    return load_folders(inside if inside.is_dir() else folder, "ImageNet-S", crop=IMAGENET_CROP)


def _load(folder: Path, name: str, only: Collection[str] | None) -> Dataset:
    train, _, _ = read_classes(need(folder, "train"), IMAGENET_CROP, only)
    held_out = need(folder, "val", "test")
    if subfolders(held_out):
        test, labels, names = read_classes(held_out, IMAGENET_CROP, only)
    else:
        test, labels, names = _read_flat(held_out, need(folder, _DEVKIT), only)
    return Dataset(name, train, test, labels, names)


def _read_flat(
    folder: Path, devkit: Path, only: Collection[str] | None
) -> tuple[FileImages, NDArray[np.intp], tuple[str, ...]]:
    """Read validation images that lie in one folder; the devkit has their classes."""
    data = need(devkit, "data")
    truth = lines(need(data, "ILSVRC2012_validation_ground_truth.txt"))
    rows = loadmat(need(data, "meta.mat"), squeeze_me=True)["synsets"]
    synset_of = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in rows}
    paths = images_in(folder)
    if len(paths) != len(truth):
        raise DatasetFilesError(
            f"{printable_path(folder)} has {len(paths):,} images, and the devkit classes for "
            f"{len(truth):,}. Unpack ILSVRC2012_img_val.tar again."
        )
    synsets = [synset_of[int(number)] for number in truth]
    kept = [i for i, synset in enumerate(synsets) if only is None or synset in only]
    classes = sorted({synsets[i] for i in kept})
    labels = np.array([classes.index(synsets[i]) for i in kept], dtype=np.intp)
    images = FileImages(tuple(paths[i] for i in kept), IMAGENET_CROP)
    return images, labels, tuple(class_name(synset) for synset in classes)


def _synsets() -> list[str]:
    from importlib.resources import files

    data = files("nouncut.models").joinpath("data/imagenet-1k-synsets.txt")
    return data.read_text("ascii").split()
