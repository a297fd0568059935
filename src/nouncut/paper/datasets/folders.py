"""Any data set with a folder per class."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import printable_path
from nouncut.paper.datasets.dataset import CentreCrop, Dataset, DatasetFilesError, FileImages
from nouncut.paper.datasets.finding import images_in, need, subfolders
from nouncut.words.wordnet import load_wordnet

TRAIN_FOLDERS = ("train", "trainval")
TEST_FOLDERS = ("test", "val", "valid", "validation")
_SYNSET = re.compile(r"n\d{8}")


def has_split(folder: Path) -> bool:
    """Tell whether a folder has a part for training and one for testing.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    bool
        True if it has a folder ``train`` and a folder ``test`` or ``val``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.folders import has_split
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     has_split(Path(folder))
    False
    """
    return all(
        any((folder / name).is_dir() for name in names) for names in (TRAIN_FOLDERS, TEST_FOLDERS)
    )


def load_folders(
    folder: Path,
    name: str | None = None,
    *,
    crop: CentreCrop | None = None,
    only: Collection[str] | None = None,
) -> Dataset:
    """Load images that are sorted into a folder per class.

    Parameters
    ----------
    folder : Path
        Has a folder per class, or folders ``train`` and ``test`` (or ``val``) that have. Folders
        may be named after classes or after WordNet's synsets ("n02085936").
    name : str, optional
        The data set; by default the folder's name.
    crop : CentreCrop, optional
        What is done to every image.
    only : collection of str, optional
        The folders to take; all by default.

    Returns
    -------
    Dataset
        Without a split, nouns are chosen by the images that are clustered.

    Raises
    ------
    DatasetFilesError
        If there are fewer than two classes, or one without images.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.folders import load_folders
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for place in ("Oat-Milk", "n02085936"):
    ...         Path(folder, place).mkdir()
    ...         Path(folder, place, "1.jpg").touch()
    ...     load_folders(Path(folder), "pairs").class_names
    ('Oat Milk', 'Maltese dog, Maltese terrier, Maltese')
    """
    name = name or printable_path(folder.resolve().name)
    if not has_split(folder):
        test, labels, classes = read_classes(folder, crop, only)
        return Dataset(name, test, test, labels, classes)
    train, _, _ = read_classes(need(folder, *TRAIN_FOLDERS), crop, only)
    test, labels, classes = read_classes(need(folder, *TEST_FOLDERS), crop, only)
    return Dataset(name, train, test, labels, classes)


def read_classes(
    folder: Path, crop: CentreCrop | None = None, only: Collection[str] | None = None
) -> tuple[FileImages, NDArray[np.intp], tuple[str, ...]]:
    """Read a folder that has a folder per class.

    Parameters
    ----------
    folder, crop, only
        As for `load_folders`.

    Returns
    -------
    images : FileImages
        All images.
    labels : ndarray of shape (n_images,)
        Their classes.
    class_names : tuple of str
        Names of the classes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.folders import read_classes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for place in ("cat", "dog"):
    ...         Path(folder, place).mkdir()
    ...         Path(folder, place, "1.jpg").touch()
    ...     read_classes(Path(folder))[1]
    array([0, 1])
    """
    places = [place for place in subfolders(folder) if only is None or place.name in only]
    if len(places) < 2 or (only is not None and len(places) < len(only)):
        wanted = "a folder per class" if only is None else f"the folders {', '.join(only)}"
        raise DatasetFilesError(
            f"{printable_path(folder)} should have {wanted}, and has "
            f"{len(places)} of them. Give the folder that holds the classes' folders."
        )
    images = [images_in(place) for place in places]
    for place, found in zip(places, images, strict=True):
        if not found:
            raise DatasetFilesError(f"{printable_path(place)} has no images. Fetch or remove it.")
    labels = np.repeat(np.arange(len(places)), [len(found) for found in images])
    paths = tuple(path for found in images for path in found)
    return FileImages(paths, crop), labels, tuple(class_name(place.name) for place in places)


def class_name(folder_name: str) -> str:
    """Return the name of a class from that of its folder.

    Parameters
    ----------
    folder_name : str
        A word with underscores or hyphens for spaces, or a synset of WordNet.

    Returns
    -------
    str
        The name; several with commas between them for a synset.

    Examples
    --------
    >>> from nouncut.paper.datasets.folders import class_name
    >>> class_name("polka-dotted_dress"), class_name("n02690373")
    ('polka dotted dress', 'airliner')
    """
    if _SYNSET.fullmatch(folder_name) and folder_name in load_wordnet():
        return ", ".join(load_wordnet()[folder_name].words)
    return printable_path(folder_name).replace("_", " ").replace("-", " ").strip()
