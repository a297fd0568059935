"""Tiny random models of the real classes, saved once per session in the real format."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from nouncut.models.mini import MiniEncoder
from nouncut.models.torch_loading import quiet_transformers

HERE = Path(__file__).parent
EXPORTS = SimpleNamespace(**runpy.run_path(str(HERE / "onnx_exports.py")))
HUB = SimpleNamespace(**runpy.run_path(str(HERE / "hub_server.py")))
START, END = "<|startoftext|>", "<|endoftext|>"
CONTEXT = 24
IMAGE_SIZE = 30
_MERGES = [
    ("p", "h"), ("o", "t"), ("ph", "ot"), ("phot", "o</w>"), ("o", "f</w>"), ("t", "h"),
    ("th", "e</w>"), ("c", "a"), ("ca", "t</w>"), ("s", "e"), ("se", "a</w>"), ("d", "o"),
]  # fmt: skip
_TEXT = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "max_position_embeddings": CONTEXT,
}
_IMAGE_MODEL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": IMAGE_SIZE,
}
_VISION = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 6,
}


def clip_tokenizer() -> Any:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*alphabet, *(letter + "</w>" for letter in alphabet), *map("".join, _MERGES)]
    vocabulary = {piece: number for number, piece in enumerate([*pieces, START, END])}
    return transformers.CLIPTokenizer(vocabulary, _MERGES, model_max_length=CONTEXT)


def unigram_tokenizer() -> Any:
    letters = "abcdefghijklmnopqrstuvwxyz.▁"
    pieces = [
        ("<unk>", 0.0),
        ("</s>", 0.0),
        ("▁photo", -1.0),
        *((letter, -3.0) for letter in letters),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>", pad_token="</s>"
    )


def bert_tokenizer() -> Any:
    letters = "abcdefghijklmnopqrstuvwxyz."
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    tokenizer = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    )


def save_clip(folder: Path, *, seed: int = 0, kind: str = "CLIP", **text: Any) -> Path:
    """Save a CLIP model, or a model of a similar class."""
    tokenizer = clip_tokenizer()
    text = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id, **_TEXT, **text}
    vision = {**_VISION, "image_size": IMAGE_SIZE, "hidden_act": text.get("hidden_act", "gelu")}
    config = getattr(transformers, f"{kind}Config")(
        text_config=text, vision_config=vision, projection_dim=12
    )
    processor = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": IMAGE_SIZE}, crop_size=IMAGE_SIZE
    )
    model = getattr(transformers, f"{kind}Model")(config)
    return _save(folder, model, tokenizer, processor, seed)


def save_siglip(folder: Path) -> Path:
    tokenizer = unigram_tokenizer()
    config = transformers.SiglipConfig(
        text_config={"vocab_size": len(tokenizer), **_TEXT},
        vision_config={**_VISION, "image_size": IMAGE_SIZE},
    )
    processor = transformers.SiglipImageProcessorPil(
        size={"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    )
    return _save(folder, transformers.SiglipModel(config), tokenizer, processor)


def save_siglip2(folder: Path) -> Path:
    """Save a "NaFlex" model, whose images keep their aspect ratio."""
    tokenizer = unigram_tokenizer()
    config = transformers.Siglip2Config(
        text_config={"vocab_size": len(tokenizer), **_TEXT},
        vision_config={**_VISION, "num_patches": 16},
    )
    processor = transformers.Siglip2ImageProcessorPil(patch_size=6, max_num_patches=20)
    return _save(folder, transformers.Siglip2Model(config), tokenizer, processor)


def save_chinese_clip(folder: Path) -> Path:
    """Save a model whose text tower is neither causal nor padded to full length."""
    tokenizer = bert_tokenizer()
    config = transformers.ChineseCLIPConfig(
        text_config={"vocab_size": len(tokenizer), **_TEXT},
        vision_config={**_VISION, "image_size": IMAGE_SIZE},
        projection_dim=12,
    )
    processor = transformers.ChineseCLIPImageProcessorPil(
        size={"shortest_edge": IMAGE_SIZE}, crop_size={"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    )
    return _save(folder, transformers.ChineseCLIPModel(config), tokenizer, processor)


def _save(folder: Path, model: Any, tokenizer: Any, processor: Any, seed: int = 0) -> Path:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        # Wide weights make the attention uneven, so that a wrong mask or position shows.
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.4)
    with quiet_transformers():
        for part in filter(None, (model, tokenizer, processor)):
            part.save_pretrained(folder)
    return folder


def save_dinov2(folder: Path) -> Path:
    """Save an image model."""
    config = transformers.Dinov2Config(**{**_IMAGE_MODEL, "patch_size": 6, "mlp_ratio": 2})
    processor = transformers.BitImageProcessorPil(
        size={"shortest_edge": 34}, crop_size={"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    )
    return _save(folder, transformers.Dinov2Model(config), None, processor)


def save_vit(folder: Path) -> Path:
    """Save an image model without its pooling layer, as many checkpoints are."""
    config = transformers.ViTConfig(**{**_IMAGE_MODEL, "patch_size": 6})
    processor = transformers.ViTImageProcessorPil(size={"height": IMAGE_SIZE, "width": IMAGE_SIZE})
    return _save(folder, transformers.ViTModel(config, add_pooling_layer=False), None, processor)


@cache
def load_oracle(folder: Path) -> tuple[Any, Any]:
    """Return the model and the tokenizer that transformers loads."""
    with quiet_transformers():
        model = transformers.AutoModel.from_pretrained(folder).eval()
        return model, transformers.AutoTokenizer.from_pretrained(folder)


@torch.inference_mode()
def oracle_texts(folder: Path, texts: list[str], *, with_mask: bool = True) -> np.ndarray:
    """Return the unit rows of transformers for texts padded to the full context."""
    model, tokenizer = load_oracle(folder)
    inputs = tokenizer(
        texts, padding="max_length", truncation=True, max_length=CONTEXT, return_tensors="pt"
    )
    mask = {"attention_mask": inputs["attention_mask"]} if with_mask else {}
    features = model.get_text_features(input_ids=inputs["input_ids"], **mask).pooler_output
    return torch.nn.functional.normalize(features, dim=1).numpy()


def photo(width: int, height: int, seed: int = 0) -> Image.Image:
    """Return noise on a gradient: structure at small and large scales."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    ramp = np.linspace(0, 255, width)[None, :, None] * np.ones((height, 1, 3))
    return Image.fromarray(((noise.astype(float) + ramp) / 2).astype(np.uint8))


def saved_once(save: Callable[..., Path], root: Path) -> Callable[..., Path]:
    """Return a function that saves a model at its first call; tests must not change the folder."""

    @cache
    def folder(**options: Any) -> Path:
        names = [save.__name__, *(f"{name}={value}" for name, value in options.items())]
        return save(root / re.sub(r"[^\w=-]", "_", "-".join(names))[-200:], **options)

    return folder


def exported(folder: Path, *, layout: str, source: Path, **options: Any) -> Path:
    """Export a saved model in one of the layouts that the hub has."""
    with quiet_transformers():
        return getattr(EXPORTS, layout)(source, folder, **options)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> SimpleNamespace:
    """Return functions that give the folders of tiny models and the results of transformers."""
    root = tmp_path_factory.mktemp("models")
    return SimpleNamespace(
        CONTEXT=CONTEXT,
        EXPORTS=EXPORTS,
        IMAGE_SIZE=IMAGE_SIZE,
        clip=saved_once(save_clip, root),
        siglip=saved_once(save_siglip, root),
        siglip2=saved_once(save_siglip2, root),
        chinese_clip=saved_once(save_chinese_clip, root),
        dinov2=saved_once(save_dinov2, root),
        vit=saved_once(save_vit, root),
        exported=saved_once(exported, root),
        clip_tokenizer=clip_tokenizer,
        load_oracle=load_oracle,
        oracle_texts=oracle_texts,
        photo=photo,
    )


@pytest.fixture(scope="session")
def mini() -> MiniEncoder:
    return MiniEncoder()


@pytest.fixture
def hub(monkeypatch, tmp_path) -> Iterator[SimpleNamespace]:
    """Serve the repositories in `hub.root` to the hub's client, whose cache starts empty."""
    with HUB.serve(tmp_path / "hub") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "downloads"))
        monkeypatch.setenv("NOUNCUT_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield hub
