from __future__ import annotations

import pickle

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from safetensors.numpy import save_file

from nouncut.errors import InputError
from nouncut.models.precomputed import read_features

FEATURES = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
NAMES = tuple(f"image {i}.jpg" for i in range(5))


def save(path, /, **arrays):
    if path.suffix == ".npy":
        np.save(path, arrays["features"])
    elif path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".safetensors":
        save_file({name: array for name, array in arrays.items() if name != "path"}, path)
    else:
        parquet.write_table(
            pyarrow.table({name: list(array) for name, array in arrays.items()}), path
        )
    return path


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".parquet"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_format_gives_the_same_features(tmp_path, suffix, dtype):
    table = read_features(save(tmp_path / f"f{suffix}", features=FEATURES.astype(dtype)))
    np.testing.assert_array_equal(table.features, FEATURES.astype(dtype))


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_names_are_found(tmp_path, suffix):
    table = read_features(save(tmp_path / f"f{suffix}", embeddings=FEATURES, path=np.array(NAMES)))
    assert table.names == NAMES


def test_numeric_columns_are_features(tmp_path):
    columns = {"path": list(NAMES), "a": FEATURES[:, 0], "b": FEATURES[:, 1]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "f.parquet")
    table = read_features(tmp_path / "f.parquet")
    np.testing.assert_array_equal(table.features, FEATURES[:, :2])
    assert table.names == NAMES


def test_large_arrays_are_mapped_not_read(tmp_path):
    table = read_features(save(tmp_path / "f.npy", features=FEATURES))
    assert isinstance(table.features, np.memmap)


class Trap:
    def __reduce__(self):
        return (print, ("a pickle was loaded",))


def test_a_pickle_is_never_loaded(tmp_path, capsys):
    np.save(tmp_path / "f.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "f.npz", features=np.array([Trap()], dtype=object))
    (tmp_path / "f.pkl").write_bytes(pickle.dumps(Trap()))
    for name in ("f.npy", "f.npz", "f.pkl"):
        with pytest.raises(InputError, match=name):
            read_features(tmp_path / name)
    assert "a pickle was loaded" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"first": FEATURES, "second": FEATURES}, "which of .* are the features"),
        ({"features": FEATURES[0]}, "one row per image"),
        ({"features": FEATURES[:0]}, "one row per image"),
        ({"features": np.array([["a", "b"]])}, "matrix of numbers"),
        ({"features": FEATURES, "path": np.array(NAMES[:2])}, "'path' has 2 names for 5 rows"),
    ],
)
def test_wrong_contents_are_explained(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message):
        read_features(save(tmp_path / "f.npz", **arrays))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".parquet"])
def test_broken_and_missing_files_are_explained(tmp_path, suffix):
    path = save(tmp_path / f"f{suffix}", features=FEATURES)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match=f"f{suffix}: cannot be read"):
        read_features(path)
    with pytest.raises(InputError, match="missing"):
        read_features(tmp_path / f"missing{suffix}")


def test_lists_of_different_lengths_are_explained(tmp_path):
    parquet.write_table(pyarrow.table({"features": [[1.0], [1.0, 2.0]]}), tmp_path / "f.parquet")
    with pytest.raises(InputError, match=r"different lengths \(1 to 2\)"):
        read_features(tmp_path / "f.parquet")
