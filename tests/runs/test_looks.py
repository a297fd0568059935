"""A second model that compares images with each other, from its files to the run."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from onnx import TensorProto, helper, save
from PIL import Image

from nouncut import cluster_images, predict_images
from nouncut.errors import InputError, ParameterError
from nouncut.models.choose import load_image_encoder
from nouncut.paper.scores import clustering_scores
from nouncut.store.store import FeatureStore

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (40, 40, 230)}


@pytest.fixture(scope="module")
def colour_model(tmp_path_factory):
    """A folder in the layout of an exported image model, whose features are the mean colour."""
    folder = tmp_path_factory.mktemp("model") / "colours"
    (folder / "onnx").mkdir(parents=True)
    pixels = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3, 8, 8])
    output = helper.make_tensor_value_info("pooler_output", TensorProto.FLOAT, ["n", 3])
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixel_values"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["pooler_output"]),
    ]
    graph = helper.make_graph(nodes, "colours", [pixels], [output])
    opset = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "onnx/model.onnx")
    settings = {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": 8, "width": 8},
        "do_normalize": False,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"model_type": "vit", "hidden_size": 3}))
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Noisy pictures of three colours, which the embedded model cannot tell apart well."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for colour, value in COLOURS.items():
        for number in range(8):
            pixels = np.clip(value + rng.normal(0, 40, (40, 40, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{colour} {number}.png")
    return folder


@pytest.fixture(scope="module")
def run(photos, colour_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    store = FeatureStore(folder / "store")
    words = ["red", "green", "blue"]
    return cluster_images(
        photos,
        3,
        model="mini",
        looks=str(colour_model),
        vocabulary=words,
        compare="looks",
        output=folder / "run",
        store=store,
    )


def colours_of(paths):
    return [str(path).rsplit("/", 1)[-1].split()[0] for path in paths]


def test_images_are_compared_by_the_second_model(run):
    labels = colours_of(run.assignments["path"].to_pylist())
    assert clustering_scores(labels, run.labels).acc == 1
    assert run.array("features").shape[1] == 3
    assert run.array("semantic").shape[1] > 3


def test_the_run_tells_which_models_it_used(run, colour_model):
    encoder = load_image_encoder(str(colour_model)).encoder
    assert run.manifest["looks"] == [
        {"name": str(colour_model), "fingerprint": encoder.fingerprint}
    ]
    assert run.manifest["model"]["name"] == "mini"
    assert run.manifest["settings"]["looks"] == [str(colour_model)]


def test_new_images_are_placed_by_the_second_model(run, photos):
    found = predict_images(run, photos)
    assert found.table["cluster"].to_pylist() == run.labels.tolist()


def test_another_version_of_the_second_model_is_refused(run, photos, colour_model, tmp_path):
    copy = tmp_path / "kept"
    shutil.copytree(colour_model, copy)
    settings = colour_model / "preprocessor_config.json"
    try:
        settings.write_text(settings.read_text().replace("false", "true"))
        with pytest.raises(InputError, match=r"another version of mini and .*colours"):
            predict_images(run, photos)
    finally:
        shutil.copy(copy / settings.name, settings)


def test_several_models_count_alike(photos, colour_model, tmp_path):
    run = cluster_images(
        photos,
        3,
        model="mini",
        looks=["mini", str(colour_model)],
        vocabulary=["red", "green", "blue"],
        compare="looks",
        output=tmp_path / "run",
        store=FeatureStore(tmp_path / "store"),
    )
    features = run.array("features")
    ends = [run.array("view_0_basis").shape[1]]
    lengths = [np.linalg.norm(part, axis=1) for part in np.split(features, ends, axis=1)]
    np.testing.assert_allclose(lengths[0], lengths[1], rtol=1e-4)
    assert predict_images(run, photos).table["cluster"].to_pylist() == run.labels.tolist()


def test_only_images_can_be_looked_at(tmp_path):
    np.save(tmp_path / "features.npy", np.eye(8, dtype=np.float32))
    with pytest.raises(ParameterError, match="`looks` needs images"):
        cluster_images(tmp_path / "features.npy", 2, looks="mini", output=tmp_path / "run")


@pytest.mark.parametrize("looks", [[], [""], "a folder that is not there"])
def test_wrong_models_are_refused(photos, tmp_path, looks):
    with pytest.raises(ParameterError, match=r"`(looks|model)`"):
        cluster_images(photos, 2, model="mini", looks=looks, output=tmp_path / "run")


def test_words_and_looks_exclude_each_other(photos, tmp_path):
    with pytest.raises(ParameterError, match="leave `looks` out"):
        cluster_images(
            photos, 2, model="mini", looks="mini", vocabulary=["cat"], output=tmp_path / "run"
        )
