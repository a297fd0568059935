"""Texts per second of a CLIP text tower: transformers with padding, and nouncut.

The tower has the size of ViT-B/32's and random weights, which take as long as trained ones. The
tokenizer uses CLIP's algorithm with a vocabulary learnt from WordNet's glosses, because CLIP's own
vocabulary would have to be downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    CLIPConfig,
    CLIPImageProcessorPil,
    CLIPModel,
    CLIPTextConfig,
    CLIPTokenizer,
    CLIPVisionConfig,
)

from _setting import print_result, setting
from nouncut.compute.rows import unit_rows
from nouncut.models.checkpoints import quiet_transformers
from nouncut.models.torch_clip import ClipEncoder
from nouncut.words.nouns import load_nouns
from nouncut.words.prompts import PROMPTS, fill_template
from nouncut.words.wordnet import load_wordnet

# ViT-B/32's text tower.
WIDTH, LAYERS, HEADS, CONTEXT, VOCABULARY = 512, 12, 8, 77, 49408
START, END = "<|startoftext|>", "<|endoftext|>"
TOLERANCE = 1e-4
PLAIN_BATCH = 32


def main() -> None:
    arguments = read_arguments()
    torch.set_num_threads(arguments.threads)
    nouns = pick_nouns(arguments.nouns)
    texts = [text for prompt in PROMPTS for text in fill_template(prompt, nouns)]
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder))
        encoder = ClipEncoder(folder, device="cpu")
        row = measure(encoder, Path(folder), texts, arguments.sample)
    title = f"{arguments.nouns} nouns with {len(PROMPTS)} prompts, {arguments.threads} threads"
    print_result(setting("torch", "transformers") | {title: [row]}, arguments.json)
    if row["largest difference"] > TOLERANCE:
        raise SystemExit(f"The two paths differ by more than {TOLERANCE}.")


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nouns", type=int, default=2000, help="how many nouns (default: 2000)")
    parser.add_argument(
        "--sample", type=int, default=256, help="texts for the padded path (default: 256)"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="torch's threads")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def pick_nouns(count: int) -> list[str]:
    """Return nouns at equal distances in the list of all nouns."""
    words = [noun.word for noun in load_nouns()]
    indices = np.linspace(0, len(words) - 1, min(count, len(words))).astype(int)
    return [words[index] for index in indices]


def save_model(folder: Path) -> None:
    """Write a random model with its tokenizer and processor in the format of a download."""
    torch.manual_seed(0)
    text = CLIPTextConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=CONTEXT,
        # Ten times the usual spread makes the attention uneven, as training would.
        initializer_factor=10.0,
    )
    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
    )
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=WIDTH)
    with quiet_transformers():
        CLIPModel(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    CLIPImageProcessorPil().save_pretrained(folder)


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


def measure(
    encoder: ClipEncoder, folder: Path, texts: Sequence[str], sample: int
) -> dict[str, Any]:
    """Time both paths and compare their vectors."""
    tokenizer = CLIPTokenizer.from_pretrained(folder)
    with quiet_transformers():
        model = CLIPModel.from_pretrained(folder)
    chosen = np.random.default_rng(0).choice(len(texts), min(sample, len(texts)), replace=False)
    sampled = [texts[index] for index in chosen]
    encode_padded(model, tokenizer, sampled[:PLAIN_BATCH])
    encoder.encode_texts(sampled[:PLAIN_BATCH])

    padded, *before = timed(lambda: encode_padded(model, tokenizer, sampled))
    ours, seconds, cpu_seconds = timed(lambda: encoder.encode_texts(texts))
    _, *after = timed(lambda: encode_padded(model, tokenizer, sampled))
    # The machine may be shared: the faster of the runs before and after ours counts.
    padded_rate, padded_cpu_rate = len(sampled) / np.minimum(before, after)
    lengths = [len(tokens) for tokens in tokenizer(list(texts))["input_ids"]]
    return {
        "nouns": "WordNet",
        "texts": len(texts),
        "mean tokens": round(float(np.mean(lengths)), 2),
        "padded texts per second": round(float(padded_rate), 1),
        "nouncut texts per second": round(len(texts) / seconds, 1),
        "nouncut seconds": round(seconds, 1),
        "speedup": round(float(len(texts) / seconds / padded_rate), 1),
        "speedup in cpu time": round(float(len(texts) / cpu_seconds / padded_cpu_rate), 1),
        "largest difference": float(np.abs(ours[chosen] - padded).max()),
    }


def timed(function: Callable[[], NDArray[Any]]) -> tuple[NDArray[Any], float, float]:
    """Return a result with its wall-clock seconds and its CPU seconds."""
    start, cpu_start = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - start, time.process_time() - cpu_start


@torch.inference_mode()
def encode_padded(model: Any, tokenizer: Any, texts: Sequence[str]) -> NDArray[Any]:
    """Encode texts with transformers, padded to the full context."""
    parts = []
    for start in range(0, len(texts), PLAIN_BATCH):
        batch = list(texts[start : start + PLAIN_BATCH])
        inputs = tokenizer(batch, padding="max_length", truncation=True, return_tensors="pt")
        parts.append(model.get_text_features(**inputs).pooler_output.numpy())
    return unit_rows(np.concatenate(parts))


if __name__ == "__main__":
    main()
