"""The Python version of CIFAR-10 and CIFAR-100, as torchvision downloads it.

Its files are pickles of a dictionary: an array of pixels, lists of classes and of names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.pickles import PICKLE_FAILURES, PickleRules, read_pickle
from nouncut.errors import InputError, describe_error, printable_path
from nouncut.paper.datasets.dataset import PixelImages

_MAKE_ARRAY, _ARRAY, _NUMBER_TYPE = (
    "numpy.core.multiarray _reconstruct",
    "numpy ndarray",
    "numpy dtype",
)
_BYTE = "u1"
_N_NUMBERS = 3 * 32 * 32


class _Array:
    """An array of bytes, whose pixels follow in its state."""

    def __init__(self) -> None:
        self.values: NDArray[np.uint8] = np.empty(0, np.uint8)


@dataclass(frozen=True)
class PickledImages(PixelImages):
    """The images of CIFAR's Python version, (3, 32, 32) each."""

    def classes(self, name: str) -> NDArray[np.intp]:
        """Return the classes of all images that the files list under a name."""
        for path, content in zip(self.files, self._contents, strict=True):
            if name not in content:
                raise InputError(f"{printable_path(path)} has no {name!r}. Unpack it again.")
        return np.concatenate([content[name] for content in self._contents])

    @cached_property
    def _contents(self) -> list[dict[str, Any]]:
        return [read_batch(path) for path in self.files]

    @cached_property
    def _records(self) -> list[NDArray[np.uint8]]:
        return [content["data"] for content in self._contents]


def read_batch(path: Path) -> dict[str, Any]:
    """Return the pixels ("data", a row per image) and the lists of classes of a file."""
    try:
        content = read_pickle(BytesIO(path.read_bytes()), _RULES)
        pixels = content.pop("data").values
        lists = {
            name: np.array(value, np.intp) for name, value in content.items() if "labels" in name
        }
        if pixels.shape[1:] != (_N_NUMBERS,) or any(
            one.shape != (len(pixels),) for one in lists.values()
        ):
            raise ValueError("its images and classes do not match")
    except (*PICKLE_FAILURES, OSError) as error:
        raise InputError(
            f"{printable_path(path)} is no file of CIFAR's Python version, or is damaged "
            f"({describe_error(error)}). Unpack the archive again."
        ) from error
    return {"data": pixels, **lists}


def _make(name: str, arguments: tuple[Any, ...]) -> Any:
    if name == _MAKE_ARRAY and arguments[0] == _ARRAY:
        return _Array()
    if name == _NUMBER_TYPE and arguments[0] == _BYTE:
        return _BYTE
    raise ValueError("it holds numbers other than bytes")


def _set_state(value: Any, state: tuple[Any, ...]) -> None:
    if not isinstance(value, _Array):
        return  # The order of bytes in a number, which a single byte does not have.
    _, shape, kind, by_columns, pixels = state
    if kind != _BYTE or by_columns:
        raise ValueError("its pixels are not in rows of bytes")
    value.values = np.frombuffer(pixels.encode("latin-1"), np.uint8).reshape(shape)


def _find(key: Any) -> Any:
    raise ValueError("it refers to another file")


_RULES = PickleRules(frozenset({_MAKE_ARRAY, _ARRAY, _NUMBER_TYPE}), _make, _set_state, _find)
