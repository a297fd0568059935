"""DTD, the Describable Textures Dataset."""

from __future__ import annotations

from pathlib import Path

from nouncut.paper.datasets.dataset import Dataset, FileImages
from nouncut.paper.datasets.finding import lines, need, numbered
from nouncut.paper.datasets.folders import class_name, has_split, load_folders


def load_dtd(folder: Path) -> Dataset:
    """Load DTD, the first of its ten splits.

    Parameters
    ----------
    folder : Path
        ``dtd`` as it is unpacked, or an image folder with a split.

    Returns
    -------
    Dataset
        3,760 images to choose nouns by (training and validation) and 1,880 to cluster.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nouncut.paper.datasets.textures import load_dtd
    >>> load_dtd(Path("dtd"))  # doctest: +SKIP
    """
    if has_split(folder):
        return load_folders(folder, "DTD")
    lists = need(folder, "labels")
    train = [*lines(need(lists, "train1.txt")), *lines(need(lists, "val1.txt"))]
    test = lines(need(lists, "test1.txt"))
    images = need(folder, "images")
    classes = sorted({entry.split("/")[0] for entry in test})
    return Dataset(
        "DTD",
        FileImages(tuple(images / entry for entry in train)),
        FileImages(tuple(images / entry for entry in test)),
        numbered([entry.split("/")[0] for entry in test], classes),
        tuple(class_name(name) for name in classes),
    )
