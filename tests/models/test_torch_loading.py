from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.utils import logging

from nouncut.errors import ModelError
from nouncut.models.torch_clip import TorchClipEncoder
from nouncut.models.torch_loading import quiet_transformers


@pytest.fixture
def copied(tiny, tmp_path):
    """Return a copy of a saved CLIP model that a test may change."""
    return shutil.copytree(tiny.clip(), tmp_path / "copy")


def encode_a_text(folder):
    return TorchClipEncoder(folder, device="cpu").encode_texts(["a cat"])


def test_missing_weights_are_an_error_and_not_random(copied):
    weights = load_file(copied / "model.safetensors")
    weights.pop("text_projection.weight")
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"do not match.*text_projection\.weight"):
        encode_a_text(copied)


def test_damaged_files_are_explained(copied):
    path = copied / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelError, match=r"cannot load .*Save or download it again"):
        encode_a_text(copied)
    (copied / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json cannot be read.*again"):
        encode_a_text(copied)


def test_one_half_of_a_dual_encoder_is_refused(tiny, tmp_path):
    with quiet_transformers():
        text = transformers.CLIPTextModel.from_pretrained(tiny.clip())
        text.save_pretrained(tmp_path)
    shutil.copy(tiny.clip() / "preprocessor_config.json", tmp_path)
    with pytest.raises(ModelError, match="CLIPTextModel, which does not encode both"):
        encode_a_text(tmp_path)


def test_a_missing_tokenizer_is_explained(tiny, tmp_path):
    for name in ("config.json", "model.safetensors", "preprocessor_config.json"):
        shutil.copy(tiny.clip() / name, tmp_path)
    with pytest.raises(ModelError, match="no tokenizer"):
        encode_a_text(tmp_path)


class _Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickled_code_in_weights_is_not_run(copied, tmp_path):
    (copied / "model.safetensors").unlink()
    torch.save({"weights": _Payload(tmp_path / "ran")}, copied / "pytorch_model.bin")
    with pytest.raises(ModelError, match="cannot load the model"):
        encode_a_text(copied)
    assert not (tmp_path / "ran").exists()


def test_code_beside_the_weights_is_not_run(copied, tmp_path):
    config = json.loads((copied / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}
    (copied / "config.json").write_text(json.dumps(config))
    (copied / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    encode_a_text(copied)
    assert not (tmp_path / "ran").exists()


def test_loading_is_silent_and_restores_the_settings(tiny, capfd):
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    encode_a_text(tiny.clip())
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")
