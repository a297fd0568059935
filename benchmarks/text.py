"""Encoding prompts and nouns with a random text tower of CLIP ViT-B/32's size: three ways.

Run it with ``python benchmarks/text.py``. The first way is transformers with texts padded to the
full context, on a sample; the second is nouncut in torch, which computes common prefixes once; the
third is nouncut in ONNX Runtime, which puts texts of equal length together. Rates per second of CPU
time do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import CLIPModel, CLIPTokenizer

from _random_clip import save_checkpoint, save_export
from _setting import print_result, setting
from nouncut.compute.rows import unit_rows
from nouncut.models.choose import load_encoder
from nouncut.models.torch_loading import quiet_transformers
from nouncut.words.nouns import load_nouns
from nouncut.words.prompts import PROMPTS, fill_template

TOLERANCE = 1e-4
PLAIN_BATCH = 32


class Timed(NamedTuple):
    """Vectors of texts and how many were encoded per second."""

    rows: NDArray[Any]
    per_second: float
    per_cpu_second: float


def main() -> None:
    arguments = read_arguments()
    torch.set_num_threads(arguments.threads)
    nouns = pick_nouns(arguments.nouns)
    count = arguments.nouns
    tables = {
        f"{count} nouns with {len(PROMPTS)} prompts": [
            text for prompt in PROMPTS for text in fill_template(prompt, nouns)
        ],
        f"{count * len(PROMPTS)} nouns alone": pick_nouns(count * len(PROMPTS)),
    }
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = save_checkpoint(Path(folder, "checkpoint"))
        export = save_export(checkpoint, Path(folder, "export"))
        result = {
            f"{title}, {arguments.threads} threads": measure(
                checkpoint, export, texts, arguments.sample
            )
            for title, texts in tables.items()
        }
    print_result(setting("torch", "transformers", "onnxruntime") | result, arguments.json)
    if max(row["largest difference"] for rows in result.values() for row in rows) > TOLERANCE:
        raise SystemExit(f"The vectors differ by more than {TOLERANCE}.")


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nouns", type=int, default=2000, help="how many nouns (default: 2000)")
    parser.add_argument(
        "--sample", type=int, default=256, help="texts for the padded way (default: 256)"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="torch's threads")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def pick_nouns(count: int) -> list[str]:
    """Return nouns at equal distances in the list of all nouns."""
    words = [noun.word for noun in load_nouns()]
    indices = np.linspace(0, len(words) - 1, min(count, len(words))).astype(int)
    return [words[index] for index in indices]


def measure(
    checkpoint: Path, export: Path, texts: Sequence[str], sample: int
) -> list[dict[str, Any]]:
    """Time the three ways and compare their vectors."""
    tokenizer = CLIPTokenizer.from_pretrained(checkpoint)
    with quiet_transformers():
        model = CLIPModel.from_pretrained(checkpoint)
    chosen = np.random.default_rng(0).choice(len(texts), min(sample, len(texts)), replace=False)
    sampled = [texts[index] for index in chosen]
    padded = timed(lambda part: encode_padded(model, tokenizer, part), sampled)
    lengths = [len(tokens) for tokens in tokenizer(list(texts))["input_ids"]]
    rows = [describe("transformers, padded", padded, padded, padded.rows)]
    for title, folder in (("nouncut, torch", checkpoint), ("nouncut, ONNX Runtime", export)):
        ours = timed(load_encoder(folder, device="cpu").encoder.encode_texts, texts)
        rows.append(describe(title, ours, padded, ours.rows[chosen]))
    return [{**row, "mean tokens": round(float(np.mean(lengths)), 2)} for row in rows]


def timed(encode: Callable[[list[str]], NDArray[Any]], texts: Sequence[str]) -> Timed:
    """Encode texts after a warm-up."""
    encode(list(texts[:PLAIN_BATCH]))
    start, cpu_start = time.perf_counter(), time.process_time()
    rows = encode(list(texts))
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    return Timed(rows, len(texts) / seconds, len(texts) / cpu_seconds)


def describe(title: str, way: Timed, padded: Timed, sampled: NDArray[Any]) -> dict[str, Any]:
    return {
        "way": title,
        "texts per second": round(way.per_second, 1),
        "texts per CPU second": round(way.per_cpu_second, 1),
        "speedup in CPU time": round(way.per_cpu_second / padded.per_cpu_second, 1),
        "largest difference": float(np.abs(sampled - padded.rows).max()),
    }


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
