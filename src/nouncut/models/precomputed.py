"""Features that somebody has computed already: npy, npz, parquet, safetensors. Never a pickle."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import InputError

# Where a file holds several arrays or columns, the first of these is taken.
FEATURE_NAMES = ("features", "image_features", "embeddings", "embedding", "vectors", "X", "arr_0")
PATH_NAMES = ("path", "paths", "file", "filename", "name", "names", "id")


@dataclass(frozen=True)
class FeatureTable:
    """Ready-made features."""

    features: NDArray[Any]
    names: tuple[str, ...] | None


def read_features(path: str | os.PathLike[str]) -> FeatureTable:
    """Read features from a file."""
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: features are read from {', '.join(_READERS)} files.")
    try:
        arrays = reader(path)
    except InputError:
        raise
    except ImportError as error:
        raise InputError(f"{path}: {error}. Install it with pip.") from error
    except Exception as error:  # every format has errors of its own
        raise InputError(f"{path}: cannot be read ({error}). Save it again.") from error
    return _check_table(path, arrays)


def _read_npy(path: Path) -> dict[str, Any]:
    return {"features": np.load(path, mmap_mode="r", allow_pickle=False)}


def _read_npz(path: Path) -> dict[str, Any]:
    # Opened here: NumPy leaves a broken file open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return dict(load_file(path))


def _read_parquet(path: Path) -> dict[str, Any]:
    from pyarrow import parquet, types

    table = parquet.read_table(path)
    arrays: dict[str, Any] = {}
    numeric = []
    for field in table.schema:
        column = table.column(field.name)
        if types.is_list(field.type) or types.is_fixed_size_list(field.type):
            arrays[field.name] = _stack(path, field.name, column.to_pylist())
        elif types.is_floating(field.type) or types.is_integer(field.type):
            numeric.append(column.to_numpy())
        else:
            arrays[field.name] = np.asarray(column.to_pylist(), dtype=str)
    if numeric and not any(name in arrays for name in FEATURE_NAMES):
        arrays["features"] = np.stack(numeric, axis=1)
    return arrays


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
    ".safetensors": _read_safetensors,
}


def _stack(path: Path, name: str, rows: list[Any]) -> NDArray[Any]:
    lengths = {len(row) if row is not None else 0 for row in rows}
    if len(lengths) > 1:
        raise InputError(
            f"{path}: the lists in column {name!r} have different lengths ({min(lengths)} to "
            f"{max(lengths)}): every image needs a vector of one length."
        )
    return np.asarray(rows)


def _check_table(path: Path, arrays: dict[str, Any]) -> FeatureTable:
    named = [name for name in FEATURE_NAMES if name in arrays]
    tables = [name for name, array in arrays.items() if np.ndim(array) == 2]
    chosen = named[0] if named else tables[0] if len(tables) == 1 else None
    if chosen is None:
        raise InputError(
            f"{path}: which of {sorted(arrays)} are the features? Call them 'features'."
        )
    features = arrays[chosen]
    if features.ndim != 2 or features.dtype.kind not in "fiu" or features.size == 0:
        raise InputError(
            f"{path}: {chosen!r} has shape {features.shape} and type {features.dtype}; features "
            "are numbers, one row per image."
        )
    if features.dtype.kind != "f":
        features = features.astype(np.float32)
    return FeatureTable(features, _find_names(path, arrays, len(features)))


def _find_names(path: Path, arrays: dict[str, Any], n_rows: int) -> tuple[str, ...] | None:
    for name in PATH_NAMES:
        if name in arrays and np.ndim(arrays[name]) == 1:
            if len(arrays[name]) != n_rows:
                raise InputError(
                    f"{path}: {len(arrays[name])} names in {name!r}, but {n_rows} features."
                )
            return tuple(str(value) for value in arrays[name])
    return None
