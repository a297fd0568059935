from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.utils import logging

from nouncut.errors import ModelError
from nouncut.models.checkpoints import (
    SHORT_NAMES,
    find_checkpoint,
    hash_checkpoint,
    quiet_transformers,
)
from nouncut.models.clip import ClipEncoder
from nouncut.models.devices import BatchSize, choose_device, choose_precision, run_in_batches


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    return tiny.clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub that holds repositories in folders and a cache that starts empty."""
    cache, asked = tmp_path / "cache", []

    def snapshot_download(name, *, revision=None, local_files_only=False, allow_patterns=None):
        asked.append((name, revision, local_files_only))
        target, source = cache / name, tmp_path / "hub" / name
        if local_files_only or not source.is_dir():
            if not target.is_dir():
                raise huggingface_hub.errors.LocalEntryNotFoundError("not there")
            return str(target)
        target.mkdir(parents=True, exist_ok=True)
        for pattern in allow_patterns:
            for path in source.glob(pattern):
                shutil.copy(path, target)
        return str(target)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return tmp_path / "hub", asked


def test_short_names_stand_for_checkpoints_on_the_hub(tiny, hub):
    root, asked = hub
    tiny.clip(root / "openai" / "clip-vit-base-patch32")
    (root / "openai" / "clip-vit-base-patch32" / "tf_model.h5").write_text("unwanted")
    encoder = ClipEncoder("ViT-B/32", device="cpu", revision="main")
    assert encoder.name == "ViT-B/32"
    assert asked == [
        ("openai/clip-vit-base-patch32", "main", True),
        ("openai/clip-vit-base-patch32", "main", False),
    ]
    found = find_checkpoint("ViT-B/32")
    assert len(asked) == 3  # the second time no one is asked
    assert not (found / "tf_model.h5").exists()
    assert SHORT_NAMES["OpenCLIP-ViT-B/32"] == "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"


def test_other_weights_are_fetched_where_there_are_no_safetensors(tiny, hub, folder):
    root, _ = hub
    source = tiny.clip(root / "someone" / "model")
    model = transformers.CLIPModel.from_pretrained(folder)
    (source / "model.safetensors").unlink()
    torch.save(model.state_dict(), source / "pytorch_model.bin")
    encoder = ClipEncoder("someone/model", device="cpu")
    expected = ClipEncoder(folder, device="cpu").encode_texts(["a cat"])
    np.testing.assert_allclose(encoder.encode_texts(["a cat"]), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["ViT-L/14", "someone/unheard-of"])
def test_an_unreachable_hub_is_explained(hub, name):
    full = SHORT_NAMES.get(name, name)
    with pytest.raises(ModelError, match=rf"'{full}'.*folder.*'mini'"):
        ClipEncoder(name, device="cpu")


def test_a_repository_without_weights_is_explained(hub):
    root, _ = hub
    (root / "someone" / "empty").mkdir(parents=True)
    (root / "someone" / "empty" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"no weights.*'mini'"):
        find_checkpoint("someone/empty")


@pytest.mark.parametrize("model", ["ViT-B-32", Path("nowhere/at-all"), "a/b/c", ""])
def test_a_model_that_is_none_is_refused(model, monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(ValueError, match=r"model must be a folder|holds no model"):
        find_checkpoint(model)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds no model.*config\.json"):
        find_checkpoint(tmp_path)


def test_missing_weights_are_an_error_and_not_made_up(folder, tmp_path):
    broken = shutil.copytree(folder, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    weights.pop("text_projection.weight")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"do not fit.*text_projection\.weight"):
        ClipEncoder(broken, device="cpu")


def test_one_half_of_a_dual_encoder_is_refused(folder, tmp_path):
    with quiet_transformers():
        text = transformers.CLIPTextModel.from_pretrained(folder)
        text.save_pretrained(tmp_path)
    shutil.copy(folder / "preprocessor_config.json", tmp_path)
    with pytest.raises(ValueError, match="CLIPTextModel, which does not encode both"):
        ClipEncoder(tmp_path, device="cpu")


def test_a_missing_tokenizer_is_explained(folder, tmp_path):
    for name in ("config.json", "model.safetensors", "preprocessor_config.json"):
        shutil.copy(folder / name, tmp_path)
    with pytest.raises(ValueError, match="no tokenizer"):
        ClipEncoder(tmp_path, device="cpu")


class _Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickled_code_in_weights_is_not_run(folder, tmp_path):
    harmful = shutil.copytree(folder, tmp_path / "harmful")
    (harmful / "model.safetensors").unlink()
    torch.save({"weights": _Payload(tmp_path / "ran")}, harmful / "pytorch_model.bin")
    with pytest.raises((pickle.UnpicklingError, ValueError, OSError)):
        ClipEncoder(harmful, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_code_beside_the_weights_is_not_run(folder, tmp_path):
    harmful = shutil.copytree(folder, tmp_path / "harmful")
    config = json.loads((harmful / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}
    (harmful / "config.json").write_text(json.dumps(config))
    (harmful / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    ClipEncoder(harmful, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_the_fingerprint_follows_what_decides_on_vectors(tiny, folder, tmp_path):
    fingerprint = ClipEncoder(folder, device="cpu").fingerprint
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert ClipEncoder(copy, device="cpu").fingerprint == fingerprint
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    settings["resample"] = 2
    (copy / "preprocessor_config.json").write_text(json.dumps(settings))
    assert ClipEncoder(copy, device="cpu").fingerprint != fingerprint
    other = tiny.clip(tmp_path / "other", seed=1)
    assert ClipEncoder(other, device="cpu").fingerprint != fingerprint


def test_the_hash_in_the_name_of_a_cached_file_is_used(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    weights = copy / "model.safetensors"
    stored = tmp_path / hashlib.sha256(weights.read_bytes()).hexdigest()
    weights.rename(stored)
    weights.symlink_to(stored)
    assert hash_checkpoint(copy) == hash_checkpoint(folder)
    stored.write_bytes(b"")
    assert hash_checkpoint(copy) == hash_checkpoint(folder)


def test_loading_is_silent_and_restores_the_settings(folder, capfd):
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    ClipEncoder(folder, device="cpu")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")


def test_importing_the_module_leaves_torch_alone():
    code = (
        "import sys, nouncut.models.clip; assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_device_and_precision_are_checked(folder):
    assert choose_device("auto").type in ("cuda", "mps", "cpu")
    assert choose_precision("auto", torch.device("cuda")) == "float16"
    assert choose_precision("bfloat16", torch.device("cuda")) == "bfloat16"
    with pytest.raises(ValueError, match="device must be"):
        ClipEncoder(folder, device="abacus")
    with pytest.raises(ValueError, match="needs a CUDA device"):
        ClipEncoder(folder, device="cpu", precision="float16")
    with pytest.raises(ValueError, match="precision must be one of"):
        ClipEncoder(folder, device="cpu", precision="int8")
    with pytest.raises(ValueError, match="batch_size must be"):
        ClipEncoder(folder, device="cpu", batch_size=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_an_absent_device_is_explained():
    with pytest.raises(ValueError, match="'cuda' is not available here"):
        choose_device("cuda")


def test_memory_that_is_never_enough_is_explained():
    def hungry(start, stop):
        raise torch.OutOfMemoryError("out of memory")

    with pytest.raises(MemoryError, match="device='cpu'"):
        run_in_batches(hungry, 9, BatchSize(8))


def test_other_errors_are_passed_on():
    def broken(start, stop):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        run_in_batches(broken, 9, BatchSize(8))
