from __future__ import annotations

import io
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.errors import ModelError
from nouncut.models.efficientnet import weights_file
from nouncut.models.pth_file import read_weights


def saved(tensors) -> bytes:
    file = io.BytesIO()
    torch.save(tensors, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def read_bytes(data: bytes, folder: Path):
    path = folder / "weights.pth"
    path.write_bytes(data)
    return read_weights(path)


SMALL = {
    "layer.weight": torch.arange(24, dtype=torch.float32).reshape(2, 3, 4),
    "layer.turned": torch.arange(6, dtype=torch.float32).reshape(2, 3).T,
    "layer.count": torch.tensor(7),
    "layer.empty": torch.zeros(0, 3),
}


def test_weights_equal_those_that_torch_reads():
    expected, found = torch.load(weights_file(), weights_only=True), read_weights(weights_file())
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor.numpy())
        assert found[name].dtype == tensor.numpy().dtype


def test_shapes_and_orders_of_axes(tmp_path):
    found = read_bytes(saved(SMALL), tmp_path)
    assert list(found) == list(SMALL)
    for name, tensor in SMALL.items():
        np.testing.assert_array_equal(found[name], tensor.numpy())


def test_tensors_may_share_their_numbers(tmp_path):
    numbers = torch.arange(10, dtype=torch.float32)
    found = read_bytes(saved({"all": numbers, "part": numbers[2:6]}), tmp_path)
    np.testing.assert_array_equal(found["part"], [2, 3, 4, 5])


class Attack:
    """Runs a function when it is unpickled."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


def attacks(folder: Path):
    header = saved(SMALL)[:137]
    mark = str(folder / "mark")
    yield header + pickle.dumps(Attack(open, mark, "w"), 2)
    yield header + pickle.dumps({"layer": Attack(eval, f"open({mark!r}, 'w')")}, 2)
    yield pickle.dumps(Attack(open, mark, "w"), 2)
    yield pickle.dumps(Attack(open, mark, "w"), 4)


def test_no_code_of_a_file_is_run(tmp_path):
    for data in attacks(tmp_path):
        with pytest.raises(ModelError, match=r"weights.pth.*cannot be read.*--force-reinstall"):
            read_bytes(data, tmp_path)
        assert not (tmp_path / "mark").exists()


def header() -> bytes:
    return b"".join(
        pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    )


def test_a_bomb_of_nested_names_does_not_hang(tmp_path):
    # Each tuple holds the last one twice: hashing the outermost would take 2^60 steps.
    program = b"\x80\x02}(K\x01" + b"".join(b"q\x00h\x00\x86" for _ in range(60)) + b"K\x02u."
    with pytest.raises(ModelError, match="no name"):
        read_bytes(header() + program, tmp_path)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((10**12,), (0,)), ((2, 3), (3, 2)), ((-1,), (1,)), ((4,), (2,)), ((100,), (1,))],
)
def test_impossible_shapes_are_refused(tmp_path, shape, strides):
    class Storage:
        pass

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            if isinstance(value, Storage):
                return ("storage", torch.FloatStorage, "1", "cpu", 6, None)
            return None

    class Tensor:
        def __reduce__(self):
            arguments = (Storage(), 0, shape, strides, False, None)
            return torch._utils._rebuild_tensor_v2, arguments

    file = io.BytesIO()
    Pickler(file, 2).dump({"layer": Tensor()})
    numbers = pickle.dumps(["1"], 2) + struct.pack("<q6f", 6, *range(6))
    with pytest.raises(ModelError, match=r"gaps|shape|larger"):
        read_bytes(header() + file.getvalue() + numbers, tmp_path)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_files_give_an_error_or_weights(tmp_path_factory, data):
    whole = saved(SMALL)
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 4))):
        if damaged:
            at = data.draw(st.integers(0, len(damaged) - 1))
            damaged[at] = data.draw(st.integers(0, 255))
    try:
        found = read_bytes(bytes(damaged), tmp_path_factory.getbasetemp())
    except ModelError:
        return
    assert all(array.size <= len(whole) for array in found.values())


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"none.pth.*No such file"):
        read_weights(tmp_path / "none.pth")
