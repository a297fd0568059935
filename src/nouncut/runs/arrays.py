"""The arrays of a run: their forms, and reading them without trust.

The headers of all arrays are compared when a run is opened. The values of an array are checked
when it is first used.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.runs.checksums import check_file, open_inside
from nouncut.runs.directory import ARRAY_SUFFIX, ARRAYS, array_path, damaged, is_array_name

_FLOAT, _WHOLE, _TRUTH = "fiu", "iu", "b"
_LARGEST = float(np.finfo(np.float64).max)
_TINY = float(np.finfo(np.float64).tiny)
_VALUES_AT_ONCE = 4 * 2**20
# Only what `write_array` writes; NumPy's own reader evaluates headers as Python.
_HEADER = re.compile(
    r"\{'descr': '([<>=|]?[a-zA-Z]\d{1,3})', 'fortran_order': False, "
    r"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), ?\} *\n",
    re.ASCII,
)
_MAGIC = b"\x93NUMPY\x01\x00"


class Form(NamedTuple):
    """What an array holds: kinds of numbers, sizes (numbers or names), and a range of values."""

    kinds: str
    shape: tuple[str | int, ...]
    low: float = -_LARGEST
    # The name of a size means the numbers below it.
    high: float | str = _LARGEST
    finite: bool = True


class Header(NamedTuple):
    """The type and shape of a .npy file, and where its values begin."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int


# The sizes "images" and "clusters" are in the manifest; others must agree between arrays.
_FORMS = {
    "features": Form(_FLOAT, ("images", "visual")),
    "semantic": Form(_FLOAT, ("images", "semantic")),
    "lengths": Form(_FLOAT, ("images",), low=0),
    "embedding": Form(_FLOAT, ("images", "coordinates")),
    "layout": Form(_FLOAT, ("images", 2), finite=False),
    "graph_data": Form(_FLOAT, ("edges",)),
    "graph_indices": Form(_WHOLE, ("edges",), 0, "images"),
    "graph_indptr": Form(_WHOLE, ("images + 1",), 0, "edges + 1"),
    "sample_rows": Form(_WHOLE, ("images",), 0),
    "placed": Form(_WHOLE, ("placed",), 0, "images"),
    "model_images": Form(_WHOLE, ("cut",), 0, "images"),
    "model_degrees": Form(_FLOAT, ("graphs", "cut")),
    "model_mean_degrees": Form(_FLOAT, ("cut",)),
    "model_weights": Form(_FLOAT, ("graphs",)),
    "model_eigenvectors": Form(_FLOAT, ("cut", "coordinates")),
    "model_centers": Form(_FLOAT, ("clusters", "coordinates")),
    "model_noun_features": Form(_FLOAT, ("prompts", "nouns", "semantic")),
    "model_tau": Form(_FLOAT, (), _TINY),
    "model_semantic_weight": Form(_FLOAT, (), 0, 1),
    "model_n_neighbors": Form(_WHOLE, (), 1),
    "model_shifted": Form(_TRUTH, ()),
    "model_membership_temperature": Form(_FLOAT, (), _TINY),
    "view_center": Form(_FLOAT, ("semantic",)),
    "view_basis": Form(_FLOAT, ("semantic", "visual")),
}
_VIEW = re.compile(r"view_\d+_(center|basis)")


def array_names(directory: Path, listed: list[str] | None) -> list[str]:
    """Return the arrays of a run; the manifests of version 0.1.0 do not list them."""
    if listed is not None:
        return listed
    folder = directory / ARRAYS
    names = os.listdir(folder) if folder.is_dir() else []
    stems = (name.removesuffix(ARRAY_SUFFIX) for name in names if name.endswith(ARRAY_SUFFIX))
    return sorted(filter(is_array_name, stems))


def known_sizes(n_images: int, n_clusters: int) -> dict[str, int]:
    """Return the sizes that do not depend on other arrays."""
    return {"images": n_images, "clusters": n_clusters, "images + 1": n_images + 1}


def check_headers(directory: Path, names: list[str], sizes: dict[str, int]) -> dict[str, int]:
    """Raise unless the shapes of all arrays agree; return their sizes by name."""
    for name in names:
        path = array_path(directory, name)
        with open_inside(path, directory) as file:
            header = _read_header(file, path)
        if form := _form(name):
            _bind(header, form, sizes, path)
    # With lengths, one view shows all features, unless words do.
    is_seen = "lengths" in names and "view_0_basis" in names and "view_basis" not in names
    if is_seen and sizes["view_0 after"] != sizes.get("visual"):
        raise damaged(array_path(directory, "view_0_basis"), "its columns do not fit the features")
    return sizes | {"edges + 1": sizes.get("edges", 0) + 1}


def map_array(
    directory: Path, name: str, sizes: Mapping[str, int], checksum: str | None
) -> NDArray[Any]:
    """Return an array, mapped into memory and read-only, after checking its values."""
    path = array_path(directory, name)
    header, array = _map_file(directory, path, checksum)
    if form := _form(name):
        _bind(header, form, dict(sizes), path)
        _check_values(array, form, sizes, path)
    return array


def map_features(
    directory: Path, path: Path, n_rows: int, checksum: str | None
) -> NDArray[np.floating]:
    """Return a part of the features of all images, mapped into memory and read-only."""
    header, array = _map_file(directory, path, checksum)
    _bind(header, Form("f", (n_rows, "features")), {}, path)
    return array


def _map_file(directory: Path, path: Path, checksum: str | None) -> tuple[Header, NDArray[Any]]:
    with open_inside(path, directory) as file:
        check_file(file, path, checksum)
        header = _read_header(file, path)
        array: NDArray[Any]
        if math.prod(header.shape):
            array = np.memmap(file, header.dtype, "r", header.offset, header.shape)
        else:
            array = np.empty(header.shape, header.dtype)
            array.setflags(write=False)
    return header, array


def _form(name: str) -> Form | None:
    if found := _VIEW.fullmatch(name):
        view = name.removesuffix(f"_{found[1]}")
        full = (f"{view} before", f"{view} after")
        return Form(_FLOAT, full if found[1] == "basis" else full[:1])
    return _FORMS.get(name)


def _read_header(file: BinaryIO, path: Path) -> Header:
    file.seek(0)
    begin = file.read(len(_MAGIC) + 2)
    length = int.from_bytes(begin[len(_MAGIC) :], "little")
    found = _HEADER.fullmatch(file.read(length).decode("latin-1"))
    if not begin.startswith(_MAGIC) or found is None:
        raise damaged(path, "it does not begin like an array")
    try:
        dtype = np.dtype(found[1])
    except TypeError as error:
        raise damaged(path, f"it holds {found[1]!r}, which is no type of numbers") from error
    shape = tuple(int(size) for size in found[2].replace(" ", "").split(",") if size)
    header = Header(dtype, shape, len(begin) + length)
    n_bytes = os.fstat(file.fileno()).st_size - header.offset
    if dtype.kind not in "fiub" or math.prod(shape) * dtype.itemsize != n_bytes:
        raise damaged(path, f"it has not the values of shape {shape} and type {dtype}")
    return header


def _bind(header: Header, form: Form, sizes: dict[str, int], path: Path) -> None:
    """Raise unless a header fits a form and the known sizes; add its own sizes to them."""
    if header.dtype.kind not in form.kinds or len(header.shape) != len(form.shape):
        raise damaged(path, f"shape {header.shape} and type {header.dtype} do not fit")
    for found, size in zip(header.shape, form.shape, strict=True):
        expected = size if isinstance(size, int) else sizes.setdefault(size, found)
        if found != expected:
            raise damaged(path, f"shape {header.shape} does not fit the other files of the run")


def _check_values(array: NDArray[Any], form: Form, sizes: Mapping[str, int], path: Path) -> None:
    flat = array.reshape(-1)
    high = sizes.get(form.high, math.inf) - 1 if isinstance(form.high, str) else form.high
    for start in range(0, len(flat) if form.finite else 0, _VALUES_AT_ONCE):
        part = flat[start : start + _VALUES_AT_ONCE]
        # NaN is in no range.
        if not (form.low <= float(part.min()) and float(part.max()) <= high):
            raise damaged(path, f"it holds values that are not from {form.low:.4g} to {high:.4g}")
