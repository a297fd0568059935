from __future__ import annotations

import errno

import numpy as np
import pytest

from nouncut.compute.files import (
    atomic_file,
    explained_writing,
    install,
    remove_waiting,
    waiting,
    write_array,
)
from nouncut.errors import OutputError, ParameterError


def test_a_file_is_replaced_only_when_it_is_complete(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")

    def fail_halfway():
        with atomic_file(path) as file:
            file.write(b"half")
            assert path.read_bytes() == b"old"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert path.read_bytes() == b"old"
    with atomic_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "array", [np.arange(12.0).reshape(3, 4).T, np.float32(2), np.empty((0, 3)), np.array(["a"])]
)
def test_arrays_are_read_back_by_numpy(tmp_path, array):
    path = tmp_path / "array.npy"
    write_array(path, np.asarray(array))
    assert not path.exists()
    install(path)
    read = np.load(path, allow_pickle=False)
    np.testing.assert_array_equal(read, array)
    assert read.dtype == np.asarray(array).dtype


def test_temporary_files_are_removed(tmp_path):
    for name in ("a", "b"):
        waiting(tmp_path / name).touch()
    (tmp_path / "c").touch()
    remove_waiting(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "Free some space, or choose another `output`."),
        (errno.EACCES, "Change its permissions, or choose another `output`."),
        (errno.ENOTDIR, "Remove it, or choose another `output`."),
        (errno.EIO, "Check the drive, or choose another `output`."),
    ],
)
def test_disk_errors_say_what_to_do(number, words):
    with (
        pytest.raises(OutputError, match=words) as caught,
        explained_writing("the run", "here", "choose another `output`"),
    ):
        raise OSError(number, "as the system says")
    assert "as the system says" in str(caught.value)


def test_other_errors_pass_through():
    with pytest.raises(ParameterError), explained_writing("the run", "here", "give up"):
        raise ParameterError("ours")
