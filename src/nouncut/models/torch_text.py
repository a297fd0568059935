"""Text towers run by torch, which turn token sequences into vectors.

In a causal tower a token depends only on the tokens before it. Tokens after the pooled one can be
left out, and texts with a common prefix share its keys and values. Encoding prompts this way is
15 times as fast as transformers with padding, and equal up to rounding (benchmarks/text.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from nouncut.models.config import SIGLIP_TYPES
from nouncut.models.torch_devices import BatchSize, run_in_batches
from nouncut.models.torch_text_batches import NO_TOKEN, cut_sequences, length_batches, prefix_groups

# Model types of transformers whose text towers are built like CLIP's.
CAUSAL_TYPES = ("clip", "metaclip_2")
# Old conversions of CLIP have a wrong end token in their configuration: 2 stands for the token with
# the highest number.
_LEGACY_END_TOKEN = 2
_TEXTS_PER_TOKENIZER_CALL = 8192

KeysValues = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class _Layer:
    """One layer of a causal tower, with its three input projections joined into one product."""

    norm1: Any
    weight: Tensor
    bias: Tensor
    out: Any
    norm2: Any
    mlp: Any


class CausalTextTower:
    """The text tower of a CLIP model, which computes common prefixes once."""

    def __init__(
        self, model: Any, tokenizer: Any, smallest_group: int = 128, smallest_batch: int = 32
    ) -> None:
        text = model.text_model
        self.smallest_group = smallest_group
        self.smallest_batch = smallest_batch
        self.context = int(text.config.max_position_embeddings)
        self._tokenizer = tokenizer
        self._token_embedding = text.embeddings.token_embedding
        self._position_embedding = text.embeddings.position_embedding
        self._layers = [_join_projections(layer) for layer in text.encoder.layers]
        self._n_heads = int(text.config.num_attention_heads)
        self._final_norm = text.final_layer_norm
        self._projection = model.text_projection
        is_legacy = model.config.model_type == "clip" and text.eos_token_id == _LEGACY_END_TOKEN
        self._end_token = None if is_legacy else int(text.eos_token_id)

    def encode(self, texts: Sequence[str], size: BatchSize) -> Tensor:
        """Return (n, text_dim) features."""
        tokens = tokenize(self._tokenizer, texts, self.context)
        sequences, inverse = cut_sequences(tokens, self._pooled_positions(tokens))
        lengths = (sequences != NO_TOKEN).sum(axis=1)
        features: Tensor = self._token_embedding.weight.new_empty(
            (len(sequences), self._projection.out_features)
        )
        for group in prefix_groups(sequences, self.smallest_group):
            prefix = self._keys_values(sequences[group.rows[0], : group.depth])
            for rows in length_batches(group.rows, lengths, self.smallest_batch):
                suffixes = sequences[rows, group.depth : lengths[rows[-1]]]
                pooled = lengths[rows] - group.depth - 1
                features[self._tensor(rows)] = self._encode_suffixes(suffixes, pooled, prefix, size)
        return features[self._tensor(inverse)]

    def _pooled_positions(self, tokens: NDArray[Any]) -> NDArray[np.intp]:
        """Return the position of every text's end token, whose vector stands for the text."""
        if self._end_token is None:
            return np.asarray(tokens.argmax(axis=1), dtype=np.intp)
        return np.asarray((tokens == self._end_token).argmax(axis=1), dtype=np.intp)

    def _encode_suffixes(
        self,
        suffixes: NDArray[np.int64],
        pooled: NDArray[Any],
        prefix: list[KeysValues],
        size: BatchSize,
    ) -> Tensor:
        def encode(start: int, stop: int) -> Tensor:
            # After a sequence's end any token will do, since no earlier token depends on it.
            tokens = self._tensor(np.maximum(suffixes[start:stop], 0))
            hidden = self._run(tokens, prefix, pooled=self._tensor(pooled[start:stop]))
            features: Tensor = self._projection(self._final_norm(hidden))
            return features.float()

        return torch.cat(run_in_batches(encode, len(suffixes), size, cost=suffixes.shape[1]))

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self._token_embedding.weight.device)

    def _keys_values(self, prefix: NDArray[np.int64]) -> list[KeysValues]:
        """Return every layer's keys and values of common tokens."""
        kept: list[KeysValues] = []
        if len(prefix):
            self._run(self._tensor(prefix[None]), [], kept=kept)
        return kept

    def _run(
        self,
        tokens: Tensor,
        prefix: list[KeysValues],
        *,
        pooled: Tensor | None = None,
        kept: list[KeysValues] | None = None,
    ) -> Tensor:
        """Run the layers on tokens that follow a prefix; the last one only at pooled positions."""
        n, length = tokens.shape
        depth = prefix[0][0].shape[1] if prefix else 0
        positions = self._position_embedding.weight[depth : depth + length]
        hidden: Tensor = (self._token_embedding(tokens) + positions).flatten(0, 1)
        future = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
        for index, layer in enumerate(self._layers):
            query, key, value = self._project(layer, hidden)
            if kept is not None:
                kept.append((key, value))
            if index == len(self._layers) - 1:
                if pooled is None:
                    break
                read = pooled + torch.arange(n, device=tokens.device) * length
                hidden, query, future = hidden[read], query[:, read], future[pooled][:, None]
            attended = _attend(query, key, value, prefix[index] if prefix else None, future, n)
            hidden = hidden + layer.out(attended)
            hidden = hidden + layer.mlp(layer.norm2(hidden))
        return hidden

    def _project(self, layer: _Layer, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, each of shape (heads, tokens, head_dim)."""
        joined = functional.linear(layer.norm1(hidden), layer.weight, layer.bias)
        heads = joined.view(len(hidden), 3, self._n_heads, -1).permute(1, 2, 0, 3).contiguous()
        return heads[0], heads[1], heads[2]


def _attend(
    query: Tensor, key: Tensor, value: Tensor, prefix: KeysValues | None, future: Tensor, n: int
) -> Tensor:
    """Attend to the common prefix and to the earlier tokens of the sequence itself.

    The prefix is not copied to every sequence: two large products handle all sequences at once.
    """
    n_heads, n_queries, width = query.shape
    length = key.shape[1] // n
    prefix_key, prefix_value = prefix or (key[:, :0], value[:, :0])
    own_query, own_key, own_value = (
        part.reshape(n_heads * n, -1, width) for part in (query, key, value)
    )
    own_scores = torch.bmm(own_query, own_key.transpose(1, 2)).view(n_heads, n, -1, length)
    own_scores = own_scores.masked_fill(future, float("-inf")).view(n_heads, n_queries, length)
    scores = torch.cat((torch.bmm(query, prefix_key.transpose(1, 2)), own_scores), dim=2)
    weights = torch.softmax(scores * width**-0.5, dim=2, dtype=torch.float32).to(value.dtype)
    on_prefix, on_own = weights[..., :-length], weights[..., -length:]
    own = torch.bmm(on_own.reshape(n_heads * n, -1, length), own_value)
    total = torch.baddbmm(own.view(n_heads, n_queries, width), on_prefix, prefix_value)
    return total.transpose(0, 1).flatten(1)


def _join_projections(layer: Any) -> _Layer:
    attention = layer.self_attn
    projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    return _Layer(
        norm1=layer.layer_norm1,
        weight=torch.cat([projection.weight for projection in projections]),
        bias=torch.cat([projection.bias for projection in projections]),
        out=attention.out_proj,
        norm2=layer.layer_norm2,
        mlp=layer.mlp,
    )


class PlainTextTower:
    """A text tower that transformers runs."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        positions = int(model.config.text_config.max_position_embeddings)
        self.context = min(positions, int(tokenizer.model_max_length))
        self._full_length = model.config.model_type in SIGLIP_TYPES

    def encode(self, texts: Sequence[str], size: BatchSize) -> Tensor:
        """Return (n, text_dim) features; repeated texts are encoded once."""
        distinct = sorted(dict.fromkeys(texts), key=len)

        def encode(start: int, stop: int) -> Tensor:
            return self._encode_batch(distinct[start:stop])

        features = torch.cat(run_in_batches(encode, len(distinct), size, cost=self.context))
        row_of = {text: row for row, text in enumerate(distinct)}
        return features[[row_of[text] for text in texts]]

    def _encode_batch(self, texts: list[str]) -> Tensor:
        inputs = self._tokenizer(
            texts,
            padding="max_length" if self._full_length else "longest",
            truncation=True,
            max_length=self.context,
            return_tensors="pt",
        ).to(self._model.device)
        if self._full_length:
            inputs = {"input_ids": inputs["input_ids"]}
        return pooled_output(self._model.get_text_features(**inputs))


def make_text_tower(model: Any, tokenizer: Any) -> CausalTextTower | PlainTextTower:
    """Return the fastest text tower that gives the model's own vectors."""
    if model.config.model_type not in CAUSAL_TYPES or tokenizer.padding_side != "right":
        return PlainTextTower(model, tokenizer)
    if model.device.type == "cpu":
        return CausalTextTower(model, tokenizer)
    # On an accelerator smaller batches take as long, because of its overhead.
    return CausalTextTower(model, tokenizer, smallest_group=1024, smallest_batch=512)


def tokenize(tokenizer: Any, texts: Sequence[str], context: int) -> NDArray[np.int64]:
    """Return (n, context) token numbers, padded."""
    parts = [
        tokenizer(
            list(texts[start : start + _TEXTS_PER_TOKENIZER_CALL]),
            padding="max_length",
            truncation=True,
            max_length=context,
            return_tensors="np",
        )["input_ids"]
        for start in range(0, len(texts), _TEXTS_PER_TOKENIZER_CALL)
    ]
    return np.concatenate(parts)


def pooled_output(output: Any) -> Tensor:
    """Return the features in the output of `get_text_features` or `get_image_features`."""
    features: Tensor = getattr(output, "pooler_output", output)
    return features.float()
