from __future__ import annotations

import shutil
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest

from nouncut.errors import ModelError, ParameterError
from nouncut.models import choose, torch_loading
from nouncut.models.choose import list_models, load_encoder, load_image_encoder, runtimes_for
from nouncut.models.onnx_clip import OnnxClipEncoder
from nouncut.models.torch_clip import TorchClipEncoder

EXPORT, CHECKPOINT = "Xenova/clip-vit-base-patch32", "openai/clip-vit-base-patch32"


@pytest.fixture
def export(tiny, hub):
    """Let the hub have the ONNX export of CLIP ViT-B/32."""
    source = tiny.exported(layout="two_graphs", source=tiny.clip())
    return shutil.copytree(source, hub.root / EXPORT)


@pytest.fixture
def checkpoint(tiny, hub):
    """Let the hub have the torch checkpoint of CLIP ViT-B/32."""
    return shutil.copytree(tiny.clip(), hub.root / CHECKPOINT)


@pytest.fixture
def without_torch(monkeypatch):
    """Hide torch from the search for packages."""
    monkeypatch.setattr(
        torch_loading, "find_spec", lambda name: None if name == "torch" else find_spec(name)
    )


def test_auto_is_clip_if_it_can_be_downloaded(export):
    assert not any(model.ready for model in list_models()[1:])
    encoder, reason = load_encoder("auto", device="cpu")
    assert isinstance(encoder, OnnxClipEncoder)
    assert encoder.name == "ViT-B/32"
    assert reason == "CLIP ViT-B/32, which was downloaded (ONNX Runtime)."
    assert load_encoder("auto", device="cpu").reason.startswith(
        "CLIP ViT-B/32, which is on this machine"
    )
    assert {model.name for model in list_models() if model.ready} == {"mini", "ViT-B/32"}


def test_auto_is_the_embedded_model_if_the_hub_does_not_show_clip(hub):
    encoder, reason = load_encoder("auto", device="cpu")
    assert encoder.name == "mini"
    assert "not CLIP" in reason
    assert "did not answer within 2 seconds" in reason


def test_auto_does_not_ask_the_hub_again_within_a_day(hub, monkeypatch):
    load_encoder("auto", device="cpu")
    monkeypatch.setattr(choose, "hub_answers", lambda name: pytest.fail("asked again"))
    encoder, reason = load_encoder("auto", device="cpu")
    assert encoder.name == "mini"
    assert "could not be reached within the last hour. It is tried again after a day" in reason
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 5 * 3600)
    assert "could not be reached 5 hours ago" in load_encoder("auto").reason
    monkeypatch.setattr(time, "time", lambda: now + 25 * 3600)
    with pytest.raises(pytest.fail.Exception, match="asked again"):
        load_encoder("auto", device="cpu")


def test_a_name_asks_the_hub_whatever_is_remembered(hub, tiny):
    load_encoder("auto", device="cpu")
    with pytest.raises(ModelError, match="could not be downloaded"):
        load_encoder("ViT-B/32", device="cpu")
    shutil.copytree(tiny.exported(layout="two_graphs", source=tiny.clip()), hub.root / EXPORT)
    assert isinstance(load_encoder("ViT-B/32", device="cpu").encoder, OnnxClipEncoder)
    assert load_encoder("auto", device="cpu").encoder.name == "ViT-B/32"


def test_auto_does_not_ask_if_downloads_are_forbidden(export, hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(choose, "hub_answers", lambda name: pytest.fail("asked"))
    encoder, reason = load_encoder("auto", device="cpu")
    assert encoder.name == "mini"
    assert reason.endswith("HF_HUB_OFFLINE forbids downloads.")
    assert hub.handler.downloaded == []


def test_a_download_that_fails_is_remembered_too(export, hub):
    (export / "onnx/vision_model.onnx").unlink()  # no layout is left, and no torch checkpoint
    encoder, reason = load_encoder("auto", device="cpu")
    assert encoder.name == "mini"
    assert "it could not be downloaded" in reason
    assert "could not be reached" in load_encoder("auto", device="cpu").reason


def test_a_broken_clip_is_not_replaced_silently(export):
    (export / "onnx/text_model.onnx").write_bytes(b"broken")
    for _ in range(2):
        with pytest.raises(ModelError, match=r"text_model\.onnx is not a complete ONNX file"):
            load_encoder("auto", device="cpu")


def test_a_checkpoint_for_torch_that_is_here_saves_a_download(tiny, hub, checkpoint, export):
    torch_encoder = load_encoder(CHECKPOINT, device="cpu").encoder
    assert isinstance(torch_encoder, TorchClipEncoder)
    encoder, reason = load_encoder("auto", device="cpu")
    assert encoder.fingerprint == torch_encoder.fingerprint
    assert reason == "CLIP ViT-B/32, which is on this machine (torch)."
    assert not any(name.startswith(EXPORT) for name in hub.handler.downloaded)
    models = {model.name: model for model in list_models(device="cpu")}
    assert models["ViT-B/32"][1:4] == (True, "torch", "")


def test_models_are_described_without_the_network(hub):
    models = {model.name: model for model in list_models(device="cpu")}
    assert models["mini"][1:4] == (True, "ONNX Runtime", "")
    assert models["ViT-B/32"].runtime == "ONNX Runtime"
    assert models["ViT-B/32"].download == f"608 MB from {EXPORT}"
    assert "SigLIP 2" in models["SigLIP2-B/16"].about
    assert "not CLIP" in models["mini"].about
    assert hub.handler.downloaded == []


@pytest.mark.parametrize(
    ("device", "gpu", "torch", "expected"),
    [
        ("auto", None, True, ("onnx", "torch")),
        ("auto", "cuda", True, ("torch", "onnx")),
        ("auto", "cuda", False, ("onnx", "torch")),
        ("cpu", "cuda", True, ("onnx", "torch")),
        ("cuda:1", None, True, ("torch",)),
        ("mps", "mps", True, ("torch",)),
    ],
)
def test_the_device_decides_on_the_runtime(monkeypatch, device, gpu, torch, expected):
    monkeypatch.setattr(choose, "gpu_kind", lambda: gpu)
    monkeypatch.setattr(choose, "has_torch", lambda: torch)
    assert runtimes_for(device) == expected


def test_a_folder_with_both_is_run_as_the_device_says(tiny, tmp_path):
    folder = shutil.copytree(tiny.clip(), tmp_path / "both")
    shutil.copytree(
        tiny.exported(layout="two_graphs", source=tiny.clip()) / "onnx", folder / "onnx"
    )
    texts = ["a cat", "the sea"]
    onnx = load_encoder(folder, device="cpu").encoder
    torch = load_encoder(folder, device="meta").encoder
    assert isinstance(onnx, OnnxClipEncoder)
    assert isinstance(torch, TorchClipEncoder)
    rows = onnx.encode_texts(texts)
    shutil.rmtree(folder / "onnx")
    again = load_encoder(folder, device="cpu").encoder.encode_texts(texts)
    np.testing.assert_allclose(again, rows, atol=1e-5)


def test_an_export_alone_cannot_run_on_a_graphics_processor(tiny):
    folder = tiny.exported(layout="two_graphs", source=tiny.clip())
    with pytest.raises(ModelError, match="ONNX export only, which runs on the CPU"):
        load_encoder(folder, device="cuda")


def test_without_torch_a_checkpoint_names_the_extra(tiny, hub, checkpoint, without_torch):
    for model in (tiny.clip(), CHECKPOINT):
        with pytest.raises(ModelError, match=r'pip install "nouncut\[torch\]"'):
            load_encoder(model, device="cpu")
    assert hub.handler.downloaded == []
    with pytest.raises(ModelError, match=r'pip install "nouncut\[torch\]"'):
        load_image_encoder(tiny.dinov2())


def test_without_torch_a_checkpoint_in_the_cache_is_not_ready(hub, checkpoint, export, monkeypatch):
    load_encoder(CHECKPOINT, device="cpu")
    assert {model.name: model for model in list_models()}["ViT-B/32"].ready
    monkeypatch.setattr("nouncut.models.checkpoints.has_torch", lambda: False)
    assert not {model.name: model for model in list_models()}["ViT-B/32"].ready
    assert isinstance(load_encoder("ViT-B/32", device="cpu").encoder, OnnxClipEncoder)


def test_only_the_image_side_is_downloaded_for_images(export, hub):
    encoder = load_image_encoder("ViT-B/32", device="cpu").encoder
    names = [name.removeprefix(f"{EXPORT}/") for name in hub.handler.downloaded]
    assert sorted(names) == ["config.json", "onnx/vision_model.onnx", "preprocessor_config.json"]
    assert encoder.image_dim == 12
    assert not {model.name: model for model in list_models()}["ViT-B/32"].ready
    assert load_encoder("ViT-B/32", device="cpu").encoder.text_dim == 12


@pytest.mark.parametrize("model", ["ViT-B-32", "a/b/c", "auto"])
def test_a_name_of_no_image_model_is_refused(model):
    with pytest.raises(ParameterError, match="`model` must be"):
        load_image_encoder(model)


def test_a_chosen_encoder_has_loaded_nothing(tiny):
    folder = tiny.exported(layout="two_graphs", source=tiny.clip())
    heavy = {"torch", "transformers", "onnxruntime", "huggingface_hub", "tokenizers"}
    code = f"""
import sys
from nouncut.models.choose import list_models, load_encoder
for model in ({str(folder)!r}, {str(tiny.clip())!r}, "mini"):
    encoder = load_encoder(model, device="cpu").encoder
    encoder.fingerprint, encoder.image_dim
list_models()
assert not {heavy!r} & set(sys.modules), {heavy!r} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
