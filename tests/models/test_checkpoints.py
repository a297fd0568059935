from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from nouncut.errors import ModelError, ParameterError
from nouncut.models.checkpoints import (
    SHORT_NAMES,
    TorchFiles,
    find_checkpoint,
    find_on_this_machine,
    hash_files,
    torch_files,
)
from nouncut.models.onnx_layouts import OnnxFiles
from nouncut.models.torch_clip import TorchClipEncoder


@pytest.fixture
def copied(tiny, tmp_path):
    """Return a copy of a saved CLIP model that a test may change."""
    return shutil.copytree(tiny.clip(), tmp_path / "copy")


def test_openclip_of_either_collection_is_found(tiny, hub):
    """LAION-400M has an ONNX export only, which also serves where torch is preferred."""
    source = hub.root / "immich-app/ViT-B-32__laion400m_e32"
    shutil.copytree(tiny.exported(layout="open_clip", source=tiny.clip(), length=24), source)
    shutil.copytree(tiny.clip(), hub.root / "laion/CLIP-ViT-B-32-laion2B-s34B-b79K")
    found = find_checkpoint("OpenCLIP-ViT-B/32-400M", runtimes=("torch", "onnx"))
    assert isinstance(found, OnnxFiles)
    larger = find_checkpoint("OpenCLIP-ViT-B/32", runtimes=("torch",))
    assert isinstance(larger, TorchFiles)


def test_short_names_have_two_repositories(tiny, hub):
    source = hub.root / "Xenova/clip-vit-base-patch32"
    shutil.copytree(tiny.exported(layout="two_graphs", source=tiny.clip()), source)
    for unwanted in ("onnx/model.onnx", "onnx/text_model_quantized.onnx", "vocab.json"):
        (source / unwanted).write_text("unwanted")
    found = find_checkpoint("ViT-B/32")
    assert isinstance(found, OnnxFiles)
    names = sorted(name.split("/", 2)[2] for name in hub.handler.downloaded)
    assert names == [
        "config.json", "onnx/text_model.onnx", "onnx/vision_model.onnx",
        "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    hub.handler.downloaded.clear()
    assert find_checkpoint("ViT-B/32") == found  # the second time only the cache is asked
    assert hub.handler.downloaded == []
    shutil.copytree(tiny.clip(), hub.root / "openai/clip-vit-base-patch32")
    assert isinstance(find_checkpoint("ViT-B/32", runtimes=("torch",)), TorchFiles)
    assert SHORT_NAMES["OpenCLIP-ViT-B/32"].torch == "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"


@pytest.mark.parametrize(
    ("layout", "options"), [("open_clip", {"length": 24}), ("one_graph", {}), ("two_graphs", {})]
)
def test_any_hub_id_with_an_export_is_found(tiny, hub, layout, options):
    source = tiny.exported(layout=layout, source=tiny.clip(), **options)
    shutil.copytree(source, hub.root / "someone/export")
    assert find_on_this_machine("someone/export") is None
    found = find_checkpoint("someone/export")
    assert isinstance(found, OnnxFiles)
    assert find_on_this_machine("someone/export") == found


@pytest.mark.parametrize("name", ["Qdrant/clip-vision", "Qdrant/clip-text"])
def test_a_tower_finds_its_sibling_on_the_hub(tiny, hub, name):
    source = tiny.exported(layout="two_folders", source=tiny.clip())
    shutil.copytree(source, hub.root / "Qdrant")
    found = find_checkpoint(name)
    assert (found.image_folder / "model.onnx").is_file()
    assert found.text_folder != found.image_folder
    assert find_on_this_machine(name) == found


def test_an_interrupted_download_goes_on(tiny, hub):
    source = tiny.exported(layout="two_graphs", source=tiny.clip())
    shutil.copytree(source, hub.root / "someone/export")
    found = find_checkpoint("someone/export")
    (found.text_folder / found.text.graph).unlink()
    assert find_on_this_machine("someone/export") is None
    assert find_checkpoint("someone/export") == found
    assert (found.text_folder / found.text.graph).is_file()


def test_other_weights_are_downloaded_if_there_are_no_safetensors(tiny, hub):
    source = shutil.copytree(tiny.clip(), hub.root / "someone/model")
    (source / "model.safetensors").unlink()
    (source / "tf_model.h5").write_text("unwanted")
    model, _ = tiny.load_oracle(tiny.clip())
    torch.save(model.state_dict(), source / "pytorch_model.bin")
    folder = find_checkpoint("someone/model").folder
    assert not (folder / "tf_model.h5").exists()
    encoder = TorchClipEncoder(folder, device="cpu")
    expected = TorchClipEncoder(tiny.clip(), device="cpu").encode_texts(["a cat"])
    np.testing.assert_allclose(encoder.encode_texts(["a cat"]), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["ViT-L/14", "someone/unheard-of"])
def test_an_unreachable_hub_is_explained(hub, name):
    full = SHORT_NAMES[name].onnx if name in SHORT_NAMES else name
    with pytest.raises(ModelError, match=rf"'{full}'.*folder.*'mini'"):
        find_checkpoint(name)


def test_a_repository_without_weights_is_explained(hub):
    (hub.root / "someone/empty").mkdir(parents=True)
    (hub.root / "someone/empty/config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"neither an ONNX export.*'mini'"):
        find_checkpoint("someone/empty")


@pytest.mark.parametrize("model", ["ViT-B-32", Path("nowhere/at-all"), "a/b/c"])
def test_a_name_of_no_model_is_refused(model, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match="`model` must be 'auto', 'mini', a folder"):
        find_checkpoint(model)


@pytest.mark.parametrize("model", [Path.cwd, str], ids=["path", "empty name"])
def test_a_folder_without_a_model_is_refused(model, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"holds no model.*vision_model.*config\.json"):
        find_checkpoint(model())


def test_a_folder_that_cannot_be_read_is_explained(copied, without_privileges):
    copied.chmod(0)
    try:
        with without_privileges(), pytest.raises(ModelError, match=r"cannot be read .*rights"):
            find_checkpoint(copied)
    finally:
        copied.chmod(0o700)


def test_the_hash_in_the_name_of_a_cached_file_is_used(tiny, copied, tmp_path):
    weights = copied / "model.safetensors"
    stored = tmp_path / hashlib.sha256(weights.read_bytes()).hexdigest()
    weights.rename(stored)
    weights.symlink_to(stored)
    expected = hash_files(torch_files(tiny.clip()))
    assert hash_files(torch_files(copied)) == expected
    stored.write_bytes(b"")
    assert hash_files(torch_files(copied)) == expected


def test_a_listing_of_files_is_not_followed_deeply(copied):
    deep = copied / "a/b/c"
    deep.mkdir(parents=True)
    (deep / "model.onnx").write_text("")
    (copied / "loop").symlink_to(copied)
    assert isinstance(find_checkpoint(copied), TorchFiles)
    assert json.loads((copied / "config.json").read_text())["model_type"] == "clip"
