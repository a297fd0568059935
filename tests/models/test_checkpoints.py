from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.utils import logging

from nouncut.errors import ModelError, ParameterError
from nouncut.models.checkpoints import (
    SHORT_NAMES,
    find_checkpoint,
    hash_checkpoint,
    quiet_transformers,
)
from nouncut.models.torch_clip import ClipEncoder


@pytest.fixture
def copied(tiny, tmp_path):
    """Return a copy of a saved CLIP model that a test may change."""
    return shutil.copytree(tiny.clip(), tmp_path / "copy")


def test_short_names_stand_for_checkpoints_on_the_hub(tiny, hub):
    source = hub.root / "openai" / "clip-vit-base-patch32"
    shutil.copytree(tiny.clip(), source)
    (source / "tf_model.h5").write_text("unwanted")
    encoder = ClipEncoder("ViT-B/32", device="cpu", revision="main")
    assert encoder.name == "ViT-B/32"
    assert hub.asked == [
        ("openai/clip-vit-base-patch32", "main", True),
        ("openai/clip-vit-base-patch32", "main", False),
    ]
    found = find_checkpoint("ViT-B/32")
    assert len(hub.asked) == 3  # the second time only the cache is asked
    assert not (found / "tf_model.h5").exists()
    assert SHORT_NAMES["OpenCLIP-ViT-B/32"] == "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"


def test_other_weights_are_downloaded_if_there_are_no_safetensors(tiny, hub):
    source = shutil.copytree(tiny.clip(), hub.root / "someone" / "model")
    (source / "model.safetensors").unlink()
    model, _ = tiny.load_oracle(tiny.clip())
    torch.save(model.state_dict(), source / "pytorch_model.bin")
    encoder = ClipEncoder("someone/model", device="cpu")
    expected = ClipEncoder(tiny.clip(), device="cpu").encode_texts(["a cat"])
    np.testing.assert_allclose(encoder.encode_texts(["a cat"]), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["ViT-L/14", "someone/unheard-of"])
def test_an_unreachable_hub_is_explained(hub, name):
    full = SHORT_NAMES.get(name, name)
    with pytest.raises(ModelError, match=rf"'{full}'.*folder.*'mini'"):
        ClipEncoder(name, device="cpu")


def test_a_repository_without_weights_is_explained(hub):
    (hub.root / "someone" / "empty").mkdir(parents=True)
    (hub.root / "someone" / "empty" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"no weights.*'mini'"):
        find_checkpoint("someone/empty")


@pytest.mark.parametrize("model", ["ViT-B-32", Path("nowhere/at-all"), "a/b/c"])
def test_a_name_of_no_model_is_refused(model, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match="`model` must be 'auto', 'mini', a folder"):
        find_checkpoint(model)


@pytest.mark.parametrize("model", [Path.cwd, str], ids=["path", "empty name"])
def test_a_folder_without_a_model_is_refused(model, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"holds no model.*config\.json"):
        find_checkpoint(model())


def test_missing_weights_are_an_error_and_not_random(copied):
    weights = load_file(copied / "model.safetensors")
    weights.pop("text_projection.weight")
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"do not match.*text_projection\.weight"):
        ClipEncoder(copied, device="cpu")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_damaged_files_are_explained(copied, name):
    (copied / name).write_bytes((copied / name).read_bytes()[:100])
    with pytest.raises(ModelError, match=r"cannot load .*Save or download it again"):
        ClipEncoder(copied, device="cpu")


def test_one_half_of_a_dual_encoder_is_refused(tiny, tmp_path):
    with quiet_transformers():
        text = transformers.CLIPTextModel.from_pretrained(tiny.clip())
        text.save_pretrained(tmp_path)
    shutil.copy(tiny.clip() / "preprocessor_config.json", tmp_path)
    with pytest.raises(ModelError, match="CLIPTextModel, which does not encode both"):
        ClipEncoder(tmp_path, device="cpu")


def test_a_missing_tokenizer_is_explained(tiny, tmp_path):
    for name in ("config.json", "model.safetensors", "preprocessor_config.json"):
        shutil.copy(tiny.clip() / name, tmp_path)
    with pytest.raises(ModelError, match="no tokenizer"):
        ClipEncoder(tmp_path, device="cpu")


class _Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickled_code_in_weights_is_not_run(copied, tmp_path):
    (copied / "model.safetensors").unlink()
    torch.save({"weights": _Payload(tmp_path / "ran")}, copied / "pytorch_model.bin")
    with pytest.raises(ModelError, match="cannot load the model"):
        ClipEncoder(copied, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_code_beside_the_weights_is_not_run(copied, tmp_path):
    config = json.loads((copied / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}
    (copied / "config.json").write_text(json.dumps(config))
    (copied / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    ClipEncoder(copied, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_the_hash_in_the_name_of_a_cached_file_is_used(tiny, copied, tmp_path):
    weights = copied / "model.safetensors"
    stored = tmp_path / hashlib.sha256(weights.read_bytes()).hexdigest()
    weights.rename(stored)
    weights.symlink_to(stored)
    assert hash_checkpoint(copied) == hash_checkpoint(tiny.clip())
    stored.write_bytes(b"")
    assert hash_checkpoint(copied) == hash_checkpoint(tiny.clip())


def test_loading_is_silent_and_restores_the_settings(tiny, capfd):
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    ClipEncoder(tiny.clip(), device="cpu")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")
