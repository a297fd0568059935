"""Reading precomputed features from npy, npz, parquet and safetensors files; never a pickle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.errors import InputError, describe_error, printable_path

# A file may hold several arrays or columns; the first of these names that it has is used.
FEATURE_NAMES = ("features", "image_features", "embeddings", "embedding", "vectors", "X", "arr_0")
PATH_NAMES = ("path", "paths", "file", "filename", "name", "names", "id")


@dataclass(frozen=True)
class FeatureTable:
    """Features, one row per image, and the names of the images if the file has them."""

    features: NDArray[Any]
    names: tuple[str, ...] | None


def read_features(path: AnyPath) -> FeatureTable:
    """Read features from a file."""
    path = Path(path)
    return _check_table(path, read_arrays(path))


def read_arrays(path: Path) -> dict[str, Any]:
    """Read all arrays or columns of a file, by name."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise file_error(path, f"features must be in a {', '.join(_READERS)} file.")
    try:
        return reader(path)
    except InputError:
        raise
    except ImportError as error:
        raise file_error(path, f"{error}. Install the package with pip.") from error
    except Exception as error:  # every format has its own errors
        problem = f"cannot be read ({describe_error(error)})"
        raise file_error(path, f"{problem}. Check the path, or save the file again.") from error


def file_error(path: Path, problem: str) -> InputError:
    """Return an error that names the file."""
    return InputError(f"{printable_path(path)}: {problem}")


def _read_npy(path: Path) -> dict[str, Any]:
    return {"features": np.load(path, mmap_mode="r", allow_pickle=False)}


def _read_npz(path: Path) -> dict[str, Any]:
    # NumPy does not close a broken file that it has opened itself.
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
        raise file_error(
            path,
            f"the lists in column {name!r} have different lengths ({min(lengths)} to "
            f"{max(lengths)}). Save vectors of equal length for all images.",
        )
    return np.asarray(rows)


def _check_table(path: Path, arrays: dict[str, Any]) -> FeatureTable:
    named = [name for name in FEATURE_NAMES if name in arrays]
    tables = [name for name, array in arrays.items() if np.ndim(array) == 2]
    chosen = named[0] if named else tables[0] if len(tables) == 1 else None
    if chosen is None:
        raise file_error(path, f"which of {sorted(arrays)} are the features? Name them 'features'.")
    features = arrays[chosen]
    if features.ndim != 2 or features.dtype.kind not in "fiu" or features.size == 0:
        raise file_error(
            path,
            f"{chosen!r} has shape {features.shape} and type {features.dtype}. Save features as a "
            "matrix of numbers with one row per image.",
        )
    if features.dtype.kind != "f":
        features = features.astype(np.float32)
    return FeatureTable(features, _find_names(path, arrays, len(features)))


def _find_names(path: Path, arrays: dict[str, Any], n_rows: int) -> tuple[str, ...] | None:
    for name in PATH_NAMES:
        if name in arrays and np.ndim(arrays[name]) == 1:
            if len(arrays[name]) != n_rows:
                raise file_error(
                    path,
                    f"{name!r} has {len(arrays[name])} names for {n_rows} rows of features. Save "
                    "one name per row.",
                )
            return tuple(str(value) for value in arrays[name])
    return None
