"""Noun vectors of a model that nouncut does not know, read from a file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nouncut.compute.files import AnyPath
from nouncut.compute.rows import unit_rows
from nouncut.errors import ParameterError, printable_path
from nouncut.models.encoder import Encoder
from nouncut.models.precomputed import FEATURE_NAMES, file_error, read_arrays
from nouncut.words.spelling import fold_word, tidy_word

# Formats that hold texts beside numbers.
SUFFIXES = (".npz", ".parquet")
_NOUN_NAMES = ("nouns", "noun", "words", "word")
_VECTOR_NAMES = ("noun_features", *FEATURE_NAMES)


def is_noun_file(model: AnyPath) -> bool:
    """Return whether what the user calls a model is a file of noun vectors."""
    return Path(model).suffix.lower() in SUFFIXES and not Path(model).is_dir()


class NounTable(Encoder):
    """Vectors of nouns, for image vectors in the same space.

    The file holds the nouns (`nouns`) and their vectors (`features`), (n_nouns, d) or (n_prompts,
    n_nouns, d). It cannot encode images, nor other texts.
    """

    def __init__(self, path: AnyPath) -> None:
        path = Path(path).expanduser()
        self.name, arrays = str(path), read_arrays(path)
        self.nouns = _read_nouns(path, arrays)
        self._vectors = _read_vectors(path, arrays, len(self.nouns))
        self._rows = {fold_word(noun): row for row, noun in enumerate(self.nouns)}
        if len(self._rows) < len(self.nouns):
            raise file_error(path, "some nouns occur more than once. Keep one row of each.")
        self.image_dim = self.text_dim = self._vectors.shape[2]
        # Their texts are not known, but every prompt needs a template of its own.
        self.prompts = tuple(f"prompt {b + 1}: {{}}" for b in range(len(self._vectors)))
        total = hashlib.sha256("\n".join(self.nouns).encode(errors="surrogatepass"))
        total.update(self._vectors.tobytes())
        self.fingerprint = total.hexdigest()

    def encode_nouns(self, nouns: Sequence[str], template: str = "{}") -> NDArray[np.float32]:
        """Return the vectors of nouns in a prompt; the mean over prompts without one."""
        rows = [self._row(noun) for noun in nouns]
        if template in self.prompts:
            return np.asarray(self._vectors[self.prompts.index(template)][rows])
        return np.asarray(unit_rows(self._vectors[:, rows].mean(axis=0)))

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts that are nouns of the table."""
        return self.encode_nouns(texts)

    def unknown_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that are not in the table."""
        return [text for text in texts if fold_word(text) not in self._rows]

    def prepare(self, image: Image.Image) -> NoReturn:
        """Refuse: a table has no network."""
        raise ParameterError(
            f"`model` {printable_path(self.name)} holds vectors of nouns, and cannot encode "
            "images. Pass a file of image features with it."
        )

    def encode_prepared(self, batch: NDArray[Any]) -> NoReturn:
        """Refuse: a table has no network."""
        raise NotImplementedError

    def _row(self, noun: str) -> int:
        if (row := self._rows.get(fold_word(noun))) is None:
            raise ParameterError(
                f"{noun!r} is not among the nouns of {printable_path(self.name)}. Leave "
                "`vocabulary` out, or add the vector."
            )
        return row


def _read_nouns(path: Path, arrays: dict[str, Any]) -> tuple[str, ...]:
    for name in _NOUN_NAMES:
        if name in arrays and np.ndim(arrays[name]) == 1:
            nouns = tuple(tidy_word(str(noun)) for noun in arrays[name])
            if all(nouns):
                return nouns
            raise file_error(path, f"{name!r} has empty nouns. Remove their rows.")
    raise file_error(path, f"which of {sorted(arrays)} are the nouns? Name them 'nouns'.")


def _read_vectors(path: Path, arrays: dict[str, Any], n_nouns: int) -> NDArray[np.float32]:
    """Return unit vectors, (n_prompts, n_nouns, d)."""
    name = next((name for name in _VECTOR_NAMES if name in arrays), None)
    if name is None:
        raise file_error(path, f"which of {sorted(arrays)} are the vectors? Name them 'features'.")
    vectors = np.asarray(arrays[name])
    if vectors.ndim == 2:
        vectors = vectors[None]
    is_numeric = vectors.dtype.kind in "fiu" and vectors.size > 0
    if vectors.ndim != 3 or not is_numeric or vectors.shape[1] != n_nouns:
        raise file_error(
            path,
            f"{name!r} has shape {np.shape(arrays[name])} and type {vectors.dtype} for {n_nouns:,} "
            "nouns. Save a matrix of numbers with one row per noun, or one such matrix per prompt.",
        )
    if not np.isfinite(vectors).all():
        raise file_error(path, "some vectors hold values that are not finite. Remove these nouns.")
    return np.stack([unit_rows(part) for part in vectors.astype(np.float32)])
