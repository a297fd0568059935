from __future__ import annotations

from contextlib import suppress

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from nouncut.errors import ModelError
from nouncut.models.onnx_graphs import check_external, read_graph


def make_graph(operator="MatMul", *, weights_among_inputs=False, **model):
    inputs = [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3])]
    if weights_among_inputs:
        inputs.append(helper.make_tensor_value_info("weight", TensorProto.FLOAT, [3, 2]))
    outputs = [helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT16, [0, 2])]
    node = helper.make_node(operator, ["pixel_values", "weight"], ["image_embeds"])
    weight = numpy_helper.from_array(np.ones((3, 2), dtype=np.float32), "weight")
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs, [weight]), **model)


@pytest.fixture
def write(tmp_path):
    def write(data):
        path = tmp_path / "model.onnx"
        path.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
        return path

    return write


@pytest.mark.parametrize("layout", ["two_graphs", "one_graph"])
def test_the_interface_of_an_export_is_read(tiny, layout):
    folder = tiny.exported(layout=layout, source=tiny.clip())
    for path in sorted(folder.glob("onnx/*.onnx")):
        expected = onnx.load(path).graph
        graph = read_graph(path)
        for found, values in ((graph.inputs, expected.input), (graph.outputs, expected.output)):
            assert list(found) == [value.name for value in values]
            for value in values:
                kind = value.type.tensor_type
                assert found[value.name].dtype == helper.tensor_dtype_to_np_dtype(kind.elem_type)
                shape = tuple(axis.dim_value or None for axis in kind.shape.dim)
                assert found[value.name].shape == shape
        assert graph.files == [path]


def test_weights_among_the_inputs_are_no_inputs(write):
    graph = read_graph(write(make_graph(weights_among_inputs=True)))
    assert list(graph.inputs) == ["pixel_values"]
    assert graph.inputs["pixel_values"].shape == (None, 3)
    assert graph.outputs["image_embeds"] == (np.dtype(np.float16), (None, 2))


def test_every_truncated_file_is_refused(write):
    data = make_graph().SerializeToString()
    for length in range(len(data)):
        with pytest.raises(ModelError, match=r"model\.onnx.*not a complete ONNX file.*again"):
            read_graph(write(data[:length]))


@given(place=st.integers(0, 10_000), byte=st.integers(0, 255))
@settings(max_examples=300, deadline=None)
def test_damaged_files_are_read_or_refused(tmp_path_factory, place, byte):
    data = bytearray(make_graph().SerializeToString())
    data[place % len(data)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.onnx"
    path.write_bytes(data)
    with suppress(ModelError):
        assert read_graph(path).inputs


@pytest.mark.parametrize("content", [b"", b"{}", b"\x80\x04\x95", b"\xff" * 40])
def test_other_files_are_refused(write, content):
    with pytest.raises(ModelError, match="not a complete ONNX file"):
        read_graph(write(content))


def test_a_missing_file_is_explained(tmp_path):
    with pytest.raises(ModelError, match=r"gone\.onnx"):
        read_graph(tmp_path / "gone.onnx")


@pytest.mark.parametrize("operator", ["MatMulInteger", "DynamicQuantizeLinear", "MatMulNBits"])
def test_quantized_graphs_are_refused(write, operator):
    with pytest.raises(ModelError, match=rf"quantized \({operator}\).*float32"):
        read_graph(write(make_graph(operator)))


def test_external_weights_are_found(write, tmp_path):
    model = make_graph()
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    graph = read_graph(path)
    assert graph.files == [path, tmp_path / "model.onnx_data"]
    check_external(graph)
    (tmp_path / "model.onnx_data").unlink()
    with pytest.raises(ModelError, match=r"needs the file model\.onnx_data"):
        check_external(graph)


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "a/../../b", "C:\\Windows\\x", "..\\secret"]
)
def test_external_weights_outside_of_the_folder_are_refused(write, location):
    model = make_graph()
    weight = model.graph.initializer[0]
    weight.data_location = TensorProto.EXTERNAL
    weight.ClearField("raw_data")
    entry = weight.external_data.add()
    entry.key, entry.value = "location", location
    with pytest.raises(ModelError, match="outside of its folder"):
        check_external(read_graph(write(model)))
