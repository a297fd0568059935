"""Texts encoded by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.errors import ModelError
from nouncut.models.config import SIGLIP_TYPES, clean_text, model_type
from nouncut.models.onnx_towers import Feeds, OnnxTower
from nouncut.models.tokens import TextTokens, read_tokens

OUTPUTS = ("text_embeds", "pooler_output")
# Larger batches do not fit the cache of a core. A graph for both sides also encodes an image with
# every batch, so that fewer batches are better there.
_TOKENS_AT_ONCE, _TOKENS_BESIDE_AN_IMAGE = 512, 2048
# Tokens of all texts at once would need much memory.
_TEXTS_AT_ONCE = 8192
_SAMPLE = "a photo of a cat."
_SAME_COSINE = 0.9999


class OnnxTexts:
    """The text side of an ONNX export.

    Texts of equal length form batches without padding if the graph gives the same vectors with
    and without it, as CLIP's does; otherwise all texts are padded to the full length.
    """

    def __init__(self, tower: OnnxTower, tokenizer: Path, config: Mapping[str, Any]) -> None:
        self.tower = tower
        self._tokenizer = tokenizer
        self._config = config
        self._fixed_length = tower.input("tokens").shape[1]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit rows; equal texts are encoded once."""
        cleaned = [clean_text(text, self._config) for text in texts]
        distinct = list(dict.fromkeys(cleaned))
        starts = range(0, len(distinct), _TEXTS_AT_ONCE)
        parts = [self._encode_part(distinct[start : start + _TEXTS_AT_ONCE]) for start in starts]
        row_of = {text: row for row, text in enumerate(distinct)}
        return unit_rows(np.concatenate(parts))[[row_of[text] for text in cleaned]]

    def _encode_part(self, texts: list[str]) -> NDArray[np.float32]:
        sequences = self._tokens.tokenize(texts)
        lengths = np.array([len(sequence) for sequence in sequences])
        if not self._trims:
            lengths[:] = self._tokens.context
        batches = [rows for length in np.unique(lengths) for rows in self._rows(lengths, length)]
        feeds = [
            self._feeds([sequences[row] for row in rows], int(lengths[rows[0]])) for rows in batches
        ]
        vectors = np.concatenate(self.tower.run_batches(feeds))
        ordered = np.empty_like(vectors)
        ordered[np.concatenate(batches)] = vectors
        return ordered

    def _rows(self, lengths: NDArray[Any], length: int) -> list[NDArray[np.intp]]:
        """Return the rows of every batch of texts with a length."""
        tokens = _TOKENS_BESIDE_AN_IMAGE if self.tower.has_input("pixels") else _TOKENS_AT_ONCE
        size = self.tower.batch_size or max(1, tokens // length)
        rows = np.flatnonzero(lengths == length)
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def _feeds(self, sequences: Sequence[Sequence[int]], length: int) -> Feeds:
        tokens, mask = self._tokens.pad(sequences, length)
        # The graph takes of these what it has inputs for.
        return {
            "tokens": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(tokens),
        }

    @cached_property
    def _tokens(self) -> TextTokens:
        return read_tokens(self._tokenizer, self._config, self._fixed_length)

    @cached_property
    def _trims(self) -> bool:
        """Whether the graph gives the same vector without padding, tried with one text."""
        if self._fixed_length or model_type(self._config) in SIGLIP_TYPES:
            return False
        sequences = self._tokens.tokenize([clean_text(_SAMPLE, self._config)])
        _ = self.tower.session.loaded  # a graph that cannot be loaded is an error, not an answer
        try:
            trimmed = self.tower.run(self._feeds(sequences, len(sequences[0])))
        except ModelError:
            return False
        padded = self.tower.run(self._feeds(sequences, self._tokens.context))
        return bool((unit_rows(trimmed) * unit_rows(padded)).sum() > _SAME_COSINE)
