"""WordLlama's table of word vectors: a text is the mean of its tokens' vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import unit_rows
from nouncut.errors import ModelError, describe_error
from nouncut.models.packages import package_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORD_DIM = 256
_VECTORS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
# Marks the beginning of a word in the tokenizer's vocabulary.
_BEGINNING = "\N{LOWER ONE EIGHTH BLOCK}"


class WordTable:
    """Vectors of words, from the package wordllama, none of whose code is run."""

    def __init__(self) -> None:
        self.files = tuple(package_file("wordllama", name) for name in (_VECTORS, _TOKENIZER))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, 256) unit rows; a text without tokens gets zeros."""
        from scipy.sparse import csr_array

        tokens = [
            encoding.ids
            for encoding in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ]
        ends = np.cumsum([0, *map(len, tokens)])
        ids = np.fromiter(chain.from_iterable(tokens), np.intp, ends[-1])
        counts = csr_array(
            (np.ones(len(ids), np.float32), ids, ends), (len(texts), len(self._vectors))
        )
        return unit_rows(counts @ self._vectors)

    def knows(self, text: str) -> bool:
        """Tell whether one of a text's words is a token by itself, not a row of pieces."""
        vocabulary = self._vocabulary
        return any(
            _BEGINNING + spelling in vocabulary
            for word in text.split()
            for spelling in (word, word.casefold())
        )

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            (vectors,) = load_file(self.files[0]).values()
            if vectors.shape[1:] != (WORD_DIM,):
                raise ValueError(f"its shape is {vectors.shape}")
        except (OSError, ValueError, SafetensorError) as error:
            raise _unreadable(self.files[0], error) from error
        return np.asarray(vectors, dtype=np.float32)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self.files[1]))
        except Exception as error:  # the library raises nothing more specific
            raise _unreadable(self.files[1], error) from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset(self._tokenizer.get_vocab())


def _unreadable(path: Path, error: Exception) -> ModelError:
    return ModelError(
        f"{str(path)!r}: the table of words cannot be read ({describe_error(error)}). Install its "
        "package again: pip install --force-reinstall wordllama"
    )
