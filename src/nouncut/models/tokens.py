"""Texts as numbers of tokens, from a tokenizer.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import ModelError, describe_error, printable_path
from nouncut.models.config import context_length, read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Tokenizers without a limit state an astronomic one.
_LONGEST_CONTEXT = 10_000


@dataclass(frozen=True)
class TextTokens:
    """A tokenizer, the number of tokens of the longest text, and how shorter ones are padded."""

    tokenizer: Tokenizer
    context: int
    pad_token: int
    pads_left: bool

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of every text, at most `context` of them."""
        encoded = self.tokenizer.encode_batch(list(texts))
        return [encoding.ids or [self.pad_token] for encoding in encoded]

    def pad(
        self, sequences: Sequence[Sequence[int]], length: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (n, length) tokens, and a mask that is 0 at padding."""
        tokens = np.full((len(sequences), length), self.pad_token, dtype=np.int64)
        mask = np.zeros_like(tokens)
        for row, sequence in enumerate(sequences):
            start = length - len(sequence) if self.pads_left else 0
            tokens[row, start : start + len(sequence)] = sequence
            mask[row, start : start + len(sequence)] = 1
        return tokens, mask


def read_tokens(path: Path, config: Mapping[str, Any], fixed: int | None = None) -> TextTokens:
    """Read a tokenizer.json and the settings beside it; `fixed` is a length that is imposed."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library has no error type of its own
        raise ModelError(
            f"{printable_path(path)} is no tokenizer ({describe_error(error)}). Download the model "
            "again."
        ) from error
    beside = path.parent / "tokenizer_config.json"
    settings = read_json(beside) if beside.is_file() else {}
    pad_token = _pad_token(tokenizer, settings)
    side = settings.get("padding_side") or (tokenizer.padding or {}).get("direction")
    limits = (
        fixed,
        context_length(config),
        (tokenizer.truncation or {}).get("max_length"),
        settings.get("model_max_length"),
    )
    context = next((n for n in limits if isinstance(n, int) and 0 < n < _LONGEST_CONTEXT), None)
    if context is None:
        raise ModelError(
            f"{printable_path(path.parent)} does not say how long a text may be: set "
            "max_position_embeddings in the text_config of its config.json."
        )
    tokenizer.no_padding()
    tokenizer.enable_truncation(context)
    return TextTokens(tokenizer, context, pad_token, str(side).lower() == "left")


def _pad_token(tokenizer: Tokenizer, settings: Mapping[str, Any]) -> int:
    token = settings.get("pad_token")
    if isinstance(token, dict):
        token = token.get("content")
    number = tokenizer.token_to_id(token) if isinstance(token, str) else None
    return int((tokenizer.padding or {}).get("pad_id", 0)) if number is None else int(number)
