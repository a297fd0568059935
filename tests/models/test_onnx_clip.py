"""ONNX exports of tiny random models in the layouts of the hub, against torch."""

from __future__ import annotations

import json
import shutil

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.errors import ModelError, ParameterError
from nouncut.models.onnx_clip import OnnxClipEncoder
from nouncut.models.onnx_layouts import find_onnx
from nouncut.models.torch_clip import TorchClipEncoder

TEXTS = [
    "a photo of the cat.", "the sea", "x", "photo " * 40, "", "Sea DOG", "a photo of the cat.",
    "Zürich 日本", "x<|endoftext|>y",
]  # fmt: skip
SIZES = ((60, 41), (17, 30), (1, 1), (90, 33), (30, 30), (31, 77))
POOLED = ("pooler_output", "pooler_output")
# The model, its layout, the options of the export, and whether texts need no padding.
EXPORTS = {
    "two graphs": ("clip", "two_graphs", {}, True),
    "attention mask": ("clip", "two_graphs", {"masked": True}, True),
    "half precision": ("clip", "two_graphs", {"suffix": "_fp16"}, True),
    "open_clip": ("clip", "open_clip", {"length": 24}, False),
    "one graph": ("clip", "one_graph", {}, True),
    "two folders": ("clip", "two_folders", {}, True),
    "siglip": ("siglip", "two_graphs", {"names": POOLED, "length": 24}, False),
    "chinese_clip": ("chinese_clip", "two_graphs", {"masked": True}, True),
}


def make(tiny, name):
    """Return the torch encoder and the ONNX encoder of the same weights."""
    kind, layout, options, _ = EXPORTS[name]
    source = getattr(tiny, kind)()
    folder = tiny.exported(layout=layout, source=source, **options)
    return TorchClipEncoder(source, device="cpu"), OnnxClipEncoder(find_onnx(folder))


def prepared(tiny, encoder):
    return np.stack([encoder.prepare(tiny.photo(*size)) for size in SIZES])


def lowest_cosine(a, b):
    assert a.shape == b.shape
    assert a.dtype == b.dtype == np.float32
    return (a * b).sum(axis=1).min()


@pytest.fixture(scope="module")
def encoders(tiny):
    return make(tiny, "two graphs")


@pytest.fixture
def copied(tiny, tmp_path):
    """Return a copy of an export that a test may change."""
    folder = tiny.exported(layout="two_graphs", source=tiny.clip())
    return shutil.copytree(folder, tmp_path / "copy")


@pytest.mark.parametrize("name", EXPORTS)
def test_both_runtimes_agree(tiny, name):
    by_torch, by_onnx = make(tiny, name)
    images = prepared(tiny, by_torch)
    np.testing.assert_array_equal(prepared(tiny, by_onnx), images)
    images.flags.writeable = False  # memory-mapped arrays are read-only
    assert lowest_cosine(by_torch.encode_prepared(images), by_onnx.encode_prepared(images)) > 0.9999
    assert lowest_cosine(by_torch.encode_texts(TEXTS), by_onnx.encode_texts(TEXTS)) > 0.9999
    assert (by_onnx.image_dim, by_onnx.text_dim) == (by_torch.image_dim, by_torch.text_dim)
    assert by_onnx.tau == by_torch.tau
    assert by_onnx.fingerprint != by_torch.fingerprint


@pytest.mark.parametrize("name", EXPORTS)
def test_texts_are_trimmed_only_where_that_changes_nothing(tiny, name):
    encoder = make(tiny, name)[1]
    tower, lengths = encoder._texts.tower, []
    run = tower.session.loaded.run

    class Spy:
        def run(self, outputs, feeds):
            lengths.append(feeds[tower._names["tokens"]].shape[1])
            return run(outputs, feeds)

    tower.session.__dict__["loaded"] = Spy()
    encoder.encode_texts(["x", "a photo of the sea"])
    assert (min(lengths[-2:]) < tiny.CONTEXT) == EXPORTS[name][-1]


@given(
    texts=st.lists(
        st.builds(
            "{}{}{}".format,
            st.sampled_from(["", "a photo of the ", "<|endoftext|>", "a "]),
            st.text(max_size=12) | st.sampled_from(["cat", "photo " * 30]),
            st.sampled_from(["", ".", " in a video game.", " the"]),
        ),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=40, deadline=None)
def test_any_texts_equal_padded_texts_of_transformers(tiny, encoders, texts):
    features = encoders[1].encode_texts(texts)
    np.testing.assert_allclose(features, tiny.oracle_texts(tiny.clip(), texts), atol=1e-4)


def test_empty_input(encoders, tiny):
    encoder = encoders[1]
    empty = np.empty((0, 3, tiny.IMAGE_SIZE, tiny.IMAGE_SIZE), dtype=np.float32)
    assert encoder.encode_prepared(empty).shape == (0, encoder.image_dim)
    assert encoder.encode_texts([]).shape == (0, encoder.text_dim)
    with pytest.raises(ParameterError, match=r"pass \[text\]"):
        encoder.encode_texts("a cat")


def test_vectors_do_not_depend_on_the_number_of_threads(tiny, encoders, monkeypatch):
    encoder = encoders[1]
    texts = [f"a photo of {n} cats" + " the" * (n % 5) for n in range(300)]
    images = np.concatenate([prepared(tiny, encoder)] * 3)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(
            "nouncut.models.onnx_towers.count_threads", lambda n_jobs, n=n_threads: n
        )
        results.append((encoder.encode_prepared(images), encoder.encode_texts(texts)))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_each_side_is_loaded_by_its_first_use(tiny):
    folder = tiny.exported(layout="two_graphs", source=tiny.clip())
    encoder = OnnxClipEncoder(find_onnx(folder))
    assert encoder.fingerprint
    sessions = encoder._image_tower.session, encoder._texts.tower.session
    assert [("loaded" in vars(session)) for session in sessions] == [False, False]
    encoder.encode_prepared(prepared(tiny, encoder))
    assert [("loaded" in vars(session)) for session in sessions] == [True, False]


def test_one_graph_for_both_sides_is_loaded_once(tiny):
    encoder = make(tiny, "one graph")[1]
    assert encoder._image_tower.session is encoder._texts.tower.session


def test_running_out_of_memory_makes_smaller_batches(tiny, encoders):
    encoder = OnnxClipEncoder(encoders[1].files)
    expected, run = encoder.encode_texts(TEXTS), encoder._texts.tower.session.loaded.run

    class Tight:
        def run(self, outputs, feeds):
            if len(feeds["input_ids"]) > 1:
                raise RuntimeError("Failed to allocate memory for requested buffer of size 1")
            return run(outputs, feeds)

    encoder._texts.tower.session.__dict__["loaded"] = Tight()
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), expected, atol=1e-6)


def test_the_fingerprint_depends_on_every_file(tiny, copied):
    def fingerprint():
        return OnnxClipEncoder(find_onnx(copied)).fingerprint

    seen = {fingerprint()}
    assert len(seen) == 1
    for name in ("preprocessor_config.json", "tokenizer_config.json", "config.json"):
        changed = {**json.loads((copied / name).read_text()), "note": "changed"}
        (copied / name).write_text(json.dumps(changed))
        seen.add(fingerprint())
    for name in ("onnx/text_model.onnx", "onnx/vision_model.onnx"):
        model = onnx.load(copied / name)
        model.doc_string = "changed"
        onnx.save(model, copied / name)
        seen.add(fingerprint())
    assert len(seen) == 6


def test_external_weights_are_used_also_through_the_links_of_a_cache(tiny, copied, tmp_path):
    graph = copied / "onnx/text_model.onnx"
    onnx.save(
        onnx.load(graph), graph, save_as_external_data=True, location="text_model.onnx_data",
        size_threshold=0,
    )  # fmt: skip
    expected = make(tiny, "two graphs")[0].encode_texts(TEXTS)
    links = tmp_path / "snapshot"
    for number, path in enumerate(sorted(path for path in copied.rglob("*") if path.is_file())):
        blob, link = tmp_path / "blobs" / str(number), links / path.relative_to(copied)
        for folder in (blob.parent, link.parent):
            folder.mkdir(parents=True, exist_ok=True)
        link.symlink_to(shutil.copy(path, blob))
    for folder in (copied, links):
        features = OnnxClipEncoder(find_onnx(folder)).encode_texts(TEXTS)
        np.testing.assert_allclose(features, expected, atol=1e-5)


def test_naflex_graphs_get_patches_their_mask_and_their_grid(tiny, tmp_path):
    """transformers' model cannot be exported; the mean of the patches stands for it."""
    source = tiny.siglip2()
    torch_encoder = TorchClipEncoder(source, device="cpu")
    folder = shutil.copytree(source, tmp_path / "naflex")
    (folder / "onnx").mkdir()

    def mean_patch(model, pixels, mask, shapes):
        weights = mask[:, :, None] / shapes.prod(dim=1)[:, None, None]
        return (pixels * weights).sum(dim=1)

    inputs = {
        "pixel_values": torch.rand(2, 20, 108),
        "pixel_attention_mask": torch.ones(2, 20, dtype=torch.int32),
        "spatial_shapes": torch.tensor([[4, 5], [5, 4]]),
    }
    axes = {name: {0: "batch"} for name in (*inputs, "pooler_output")}
    export = tiny.EXPORTS.export_graph
    export(
        folder / "onnx/vision_model.onnx", torch.nn.Identity(), mean_patch, inputs,
        ["pooler_output"], axes,
    )  # fmt: skip
    export(
        folder / "onnx/text_model.onnx", torch.nn.Identity(),
        lambda model, tokens: tokens.float() @ torch.ones(tiny.CONTEXT, 108),
        {"input_ids": torch.ones(1, tiny.CONTEXT, dtype=torch.int64)}, ["pooler_output"],
        {"input_ids": {0: "batch"}, "pooler_output": {0: "batch"}},
    )  # fmt: skip
    encoder = OnnxClipEncoder(find_onnx(folder))
    batch = prepared(tiny, torch_encoder)
    features = encoder.encode_prepared(batch)
    for row, packed in zip(features, batch, strict=True):
        count = int(packed[0, -1, :2].prod())
        patches = packed[:, :count].transpose(1, 2, 0).reshape(count, -1)
        expected = patches.mean(axis=0)
        np.testing.assert_allclose(row, expected / np.linalg.norm(expected), atol=1e-5)


def truncate(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1000])


def test_truncated_graphs_are_explained(copied):
    for name in ("onnx/vision_model.onnx", "onnx/text_model.onnx"):
        broken = shutil.copytree(copied, copied.parent / name.replace("/", "-"))
        truncate(broken, name)
        with pytest.raises(ModelError, match=rf"{name}.*not a complete ONNX file.*again"):
            OnnxClipEncoder(find_onnx(broken))


def test_a_graph_that_the_runtime_refuses_is_explained(copied):
    path = copied / "onnx/text_model.onnx"
    model = onnx.load(path)
    model.graph.node[0].op_type = "Unheard"
    onnx.save(model, path)
    encoder = OnnxClipEncoder(find_onnx(copied))
    with pytest.raises(ModelError, match=r"text_model\.onnx.*cannot be loaded"):
        encoder.encode_texts(["a cat"])


@pytest.mark.parametrize(
    ("name", "rename", "problem"),
    [
        ("vision_model", {"image_embeds": "logits"}, None),
        ("vision_model", {"pixel_values": "attention_mask"}, "no input for pixels"),
        ("text_model", {"input_ids": "attention_mask"}, "no input for tokens"),
    ],
)
def test_other_names_of_inputs_and_outputs(copied, name, rename, problem):
    path = copied / f"onnx/{name}.onnx"
    model = onnx.load(path)
    graph = model.graph
    for old, new in rename.items():
        for value in (*graph.input, *graph.output):
            value.name = new if value.name == old else value.name
        for node in graph.node:
            node.input[:] = [new if part == old else part for part in node.input]
            node.output[:] = [new if part == old else part for part in node.output]
    onnx.save(model, path)
    if problem is None:  # the only vector cannot be mistaken, whatever its name
        assert OnnxClipEncoder(find_onnx(copied)).image_dim == 12
        return
    with pytest.raises(ModelError, match=rf"{name}\.onnx has {problem}.*'pixel_values'"):
        OnnxClipEncoder(find_onnx(copied))


def test_several_outputs_of_which_none_is_known_are_refused(tiny, copied):
    source = tiny.exported(
        layout="image_model", source=tiny.dinov2(), outputs=("last_hidden_state",)
    )
    shutil.copy(source / "onnx/model.onnx", copied / "onnx/text_model.onnx")
    with pytest.raises(ModelError, match=r"text_model\.onnx has no input for tokens"):
        OnnxClipEncoder(find_onnx(copied))
    model = onnx.load(copied / "onnx/vision_model.onnx")
    model.graph.output[0].name = "logits"
    model.graph.output.append(onnx.ValueInfoProto(name="others"))
    onnx.save(model, copied / "onnx/vision_model.onnx")
    with pytest.raises(ModelError, match="the outputs 'logits', 'others', of which none"):
        OnnxClipEncoder(find_onnx(copied))


def test_towers_of_different_models_are_refused(tiny, copied):
    other = tiny.exported(layout="two_graphs", source=tiny.siglip(), names=POOLED, length=24)
    shutil.copy(other / "onnx/text_model.onnx", copied / "onnx/text_model.onnx")
    with pytest.raises(ModelError, match=r"vectors of 12 numbers, but .* of 16"):
        OnnxClipEncoder(find_onnx(copied))


def test_images_of_another_size_are_refused(copied):
    path = copied / "preprocessor_config.json"
    changed = {**json.loads(path.read_text()), "crop_size": {"height": 36, "width": 36}}
    path.write_text(json.dumps(changed))
    with pytest.raises(ModelError, match=r"takes images of \(30, 30\) pixels.*makes \(36, 36\)"):
        OnnxClipEncoder(find_onnx(copied))


@pytest.mark.parametrize("content", ["", "{}", "[1, 2"])
def test_a_damaged_tokenizer_is_explained(copied, content):
    (copied / "tokenizer.json").write_text(content)
    encoder = OnnxClipEncoder(find_onnx(copied))
    with pytest.raises(ModelError, match=r"tokenizer\.json is no tokenizer"):
        encoder.encode_texts(["a cat"])


def test_tokens_beyond_the_vocabulary_are_explained(copied):
    tokenizer = json.loads((copied / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary.update({piece: number + 5000 for piece, number in vocabulary.items()})
    (copied / "tokenizer.json").write_text(json.dumps(tokenizer))
    encoder = OnnxClipEncoder(find_onnx(copied))
    with pytest.raises(ModelError, match=r"text_model\.onnx cannot be run"):
        encoder.encode_texts(["a cat"])
