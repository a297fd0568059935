"""A random model of CLIP ViT-B/32's size, as a checkpoint of transformers and as an ONNX export.

Random weights take as long as trained ones. The tokenizer uses CLIP's algorithm with a vocabulary
learnt from WordNet's glosses, because CLIP's own vocabulary would have to be downloaded.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

from nouncut.models.torch_loading import quiet_transformers
from nouncut.words.wordnet import load_wordnet

CONTEXT, VOCABULARY = 77, 49408
START, END = "<|startoftext|>", "<|endoftext|>"
_SETTINGS = ("config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json")


class _Function(torch.nn.Module):
    def __init__(self, model: Any, function: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self.function = function

    def forward(self, batch: torch.Tensor) -> Any:
        return self.function(self.model, batch)


def save_checkpoint(folder: Path, **vision: Any) -> Path:
    """Write the model with its tokenizer and processor; `vision` changes the image tower."""
    torch.manual_seed(0)
    # Ten times the usual spread makes the attention uneven, as training would.
    config = CLIPConfig(
        text_config={"initializer_factor": 10.0},
        vision_config={"initializer_factor": 10.0, **vision},
    )
    with quiet_transformers():
        CLIPModel(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    CLIPImageProcessorPil().save_pretrained(folder)
    return folder


def save_export(checkpoint: Path, folder: Path) -> Path:
    """Write the ONNX export of a checkpoint, in the layout of Xenova's exports."""
    (folder / "onnx").mkdir(parents=True)
    for name in _SETTINGS:
        shutil.copy(checkpoint / name, folder / name)
    with quiet_transformers():
        model = CLIPModel.from_pretrained(checkpoint, attn_implementation="eager").eval()
    _export(
        _Function(model, lambda model, x: model.get_image_features(pixel_values=x).pooler_output),
        folder / "onnx/vision_model.onnx",
        ("pixel_values", torch.rand(2, 3, 224, 224), {0: "batch_size"}),
        "image_embeds",
    )
    _export(
        _Function(model, lambda model, x: model.get_text_features(input_ids=x).pooler_output),
        folder / "onnx/text_model.onnx",
        ("input_ids", torch.arange(14).view(2, 7), {0: "batch_size", 1: "sequence_length"}),
        "text_embeds",
    )
    return folder


def _export(
    module: torch.nn.Module, path: Path, given: tuple[str, torch.Tensor, Any], output: str
) -> None:
    name, sample, axes = given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (sample,),
            str(path),
            input_names=[name],
            output_names=[output],
            dynamic_axes={name: axes, output: {0: "batch_size"}},
            opset_version=17,
            dynamo=False,
        )


def make_tokenizer() -> CLIPTokenizer:
    """Learn byte pairs from glosses; the start and end tokens have the last two numbers."""
    learner = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    learner.normalizer = normalizers.Lowercase()
    splits = [pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    learner.pre_tokenizer = pre_tokenizers.Sequence(splits)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    learner.train_from_iterator((synset.gloss for synset in load_wordnet().values()), trainer)
    learnt = json.loads(learner.to_str())["model"]
    vocabulary = {**learnt["vocab"], START: VOCABULARY - 2, END: VOCABULARY - 1}
    merges: Any = [tuple(merge) for merge in learnt["merges"]]
    return CLIPTokenizer(vocab=vocabulary, merges=merges, model_max_length=CONTEXT)
