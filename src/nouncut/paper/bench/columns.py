"""The columns of a benchmark: data sets by name, each with the images that choose its nouns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from nouncut.errors import InputError, ParameterError, printable_path
from nouncut.paper.datasets.catalog import KNOWN, find_folder, find_name, load_dataset
from nouncut.paper.datasets.dataset import Dataset, ImageSource
from nouncut.paper.published import ShiftNouns
from nouncut.paper.tables.score_table import AVERAGE, Column

# Variants of ImageNet under domain shift, which have no training images of their own.
_SHIFTED = ("imagenet-c", "imagenet-v2", "imagenet-s")
# The paper does not name the corruption; its authors' code reads this one.
_PAPERS_CORRUPTION = "gaussian_noise/1"
# ImageNet-C's own scores leave out its four extra corruptions.
_CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise",
    "defocus_blur", "glass_blur", "motion_blur", "zoom_blur",
    "snow", "frost", "fog", "brightness",
    "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
_ALL_CORRUPTIONS = tuple(f"{kind}/{level}" for kind in _CORRUPTIONS for level in range(1, 6))


@dataclass(frozen=True)
class DataColumn:
    """A column, and its data sets: it shows the mean of their scores."""

    column: Column
    load: Callable[[], Iterator[Dataset]]

    @classmethod
    def of_one(cls, column: Column, dataset: Dataset) -> DataColumn:
        """Return the column of a data set that is loaded already."""
        return cls(column, lambda: iter([dataset]))


def load_columns(
    data: Sequence[str], data_root: Path | None = None, shift_nouns: ShiftNouns = "train"
) -> list[DataColumn]:
    """Load data sets by name or folder; those that are named twice have one column."""
    named = list({one.id: one for one in (_find(text, data_root) for text in data)}.values())
    folders = [one.folder for one in named if one.folder]
    reserved = {AVERAGE.title, *(one.title for one in named if not one.folder)}
    titles = dict(zip(folders, folder_titles(folders, reserved), strict=True))
    loader = _Loader(data_root, shift_nouns)
    found = []
    for one in named:
        column = Column(titles[one.folder] if one.folder else one.title, one.paper_name)
        if len(one.parts) == 1:
            # At once: missing files are common, and methods take long.
            found.append(DataColumn.of_one(column, loader.load(one.parts[0])))
        else:
            found.append(DataColumn(column, partial(map, loader.load, one.parts)))
    return found


def load_single(
    data: str, data_root: Path | None = None, shift_nouns: ShiftNouns = "train"
) -> Dataset:
    """Load one data set by name or folder."""
    found = _find(data, data_root)
    if len(found.parts) > 1:
        raise ParameterError(f"{data} is {len(found.parts)} data sets. Name one: {found.parts[0]}.")
    return _Loader(data_root, shift_nouns).load(found.parts[0])


class _Named(NamedTuple):
    """What a name or folder stands for; `parts` are names or folders of single data sets."""

    id: str
    title: str
    parts: tuple[str, ...]
    paper_name: str | None = None
    folder: Path | None = None


def _find(data: str, data_root: Path | None) -> _Named:
    name = find_name(data)
    if name is None or (data_root is None and Path(data).is_dir()):
        folder = Path(data).resolve()
        return _Named(str(folder), printable_path(folder.name), (data,), folder=folder)
    title = KNOWN[name].title
    if name != "imagenet-c" or data_root is None:
        return _Named(name, title, (data,), title)
    return _find_corruptions(data, find_folder(KNOWN[name], data_root))


def _find_corruptions(data: str, folder: Path) -> _Named:
    title, inside = KNOWN["imagenet-c"].title, data.partition("/")[2]
    if inside == "all":
        present = [part for part in _ALL_CORRUPTIONS if (folder / part).is_dir()]
        if not present:
            raise InputError(
                f"{printable_path(folder)} should hold {_PAPERS_CORRUPTION} and the like, and does "
                f"not. Its official files: {KNOWN['imagenet-c'].source}"
            )
        of_all = "" if len(present) == len(_ALL_CORRUPTIONS) else f" of {len(_ALL_CORRUPTIONS)}"
        parts = tuple(f"imagenet-c/{part}" for part in present)
        return _Named("imagenet-c/all", f"{title} (mean of {len(parts)}{of_all})", parts)
    if not inside and (folder / _PAPERS_CORRUPTION).is_dir():
        inside = _PAPERS_CORRUPTION
    if not inside:
        # One corruption without its folders, or none: the loader knows.
        return _Named("imagenet-c", title, ("imagenet-c",), title)
    paper_name = title if inside == _PAPERS_CORRUPTION else None
    name = f"imagenet-c/{inside}"
    return _Named(name, f"{title}/{printable_path(inside)}", (name,), paper_name)


def folder_titles(folders: Sequence[Path], reserved: Collection[str] = ()) -> list[str]:
    """Return the names of folders, with those of their parents where names would not differ."""

    def tail(path: Path, n: int) -> str:
        return printable_path(Path(*path.parts[-n:]))

    def shortest(path: Path) -> str:
        for n in count(1):
            same = sum(tail(other, n) == tail(path, n) for other in folders)
            if same == 1 and tail(path, n) not in reserved:
                break
        return tail(path, n)

    return [shortest(path) for path in folders]


@dataclass(frozen=True)
class _Loader:
    data_root: Path | None
    shift_nouns: ShiftNouns

    def load(self, data: str) -> Dataset:
        dataset = load_dataset(data, self.data_root)
        name = None if self.data_root is None else find_name(data)
        inside = data.partition("/")[2]
        if name == "imagenet-c" and inside:
            dataset = replace(dataset, name=f"{dataset.name}/{printable_path(inside)}")
        if name in _SHIFTED and self.shift_nouns == "train":
            return replace(dataset, train=self._imagenet_train(dataset.name))
        return dataset

    def _imagenet_train(self, title: str) -> ImageSource:
        try:
            return self._imagenet.train
        except InputError as error:
            raise InputError(
                f"The nouns of {title} are chosen with ImageNet's training images, as the paper's "
                f"authors do. {error} Or set `shift_nouns` to own: the images of {title} then "
                "choose."
            ) from error

    @cached_property
    def _imagenet(self) -> Dataset:
        return load_dataset("imagenet-1k", self.data_root)
