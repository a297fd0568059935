"""Nouns into stored features; nothing is encoded twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.progress import Progress, silent
from nouncut.models.encoder import Encoder
from nouncut.runs.batches import batch_ends, seconds_per_item
from nouncut.runs.encode_again import read_or_encode
from nouncut.store.store import FeatureStore, text_key
from nouncut.words.prompts import check_prompts, fill_template

# Filters and names use nouns without a prompt around them: one text per noun instead of seven,
# and the same names.
PLAIN = ("{}",)
# A batch grows to twice the size of the one before it: small ones tell the speed of the model soon,
# and in large ones more texts have the same length, which is faster.
_FIRST_BATCH, _LARGEST_BATCH = 512, 8192
_ROWS_AT_ONCE = 16_384
# Vectors of this many words or more are kept side by side in the store as well.
_LONG_LIST = 4096


def encode_nouns(
    nouns: Sequence[str],
    prompts: Sequence[str],
    encoder: Encoder,
    store: FeatureStore | None = None,
    *,
    progress: Progress | None = None,
) -> list[NDArray[np.float32]]:
    """Encode nouns with prompts around them.

    Parameters
    ----------
    nouns : sequence of str
        Words.
    prompts : sequence of str
        Templates, each with one ``{}`` for the noun; "{}" is the noun alone.
    encoder : Encoder
        The model.
    store : FeatureStore, optional
        Where features are kept; the user's cache by default.
    progress : callable, optional
        Called with the stage ("encoding nouns", or "encoding phrases" if there are prompts), the
        number of texts done and the total.

    Returns
    -------
    list of ndarray of shape (n_nouns, text_dim)
        Unit rows, one array per prompt.

    Examples
    --------
    >>> import tempfile
    >>> from nouncut import encode_nouns
    >>> from nouncut.models.choose import load_encoder
    >>> from nouncut.store.store import FeatureStore
    >>> encoder = load_encoder("mini", device="cpu").encoder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     features = encode_nouns(["cat", "dog"], ["{}", "a {}."], encoder, FeatureStore(folder))
    >>> len(features), features[0].shape
    (2, (2, 727))
    """
    store = store or FeatureStore()
    return TextEncoding(nouns, prompts, encoder, store, progress=progress).finish()


class TextEncoding:
    """Encodes nouns in prompts that have no stored features.

    Texts are taken in random order, so that the first of them tell how long all will take. Their
    batches do not depend on when a trial ends.
    """

    def __init__(
        self,
        nouns: Sequence[str],
        prompts: Sequence[str],
        encoder: Encoder,
        store: FeatureStore,
        *,
        progress: Progress | None = None,
    ) -> None:
        self._encoder, self._store, self._report = encoder, store, progress or silent
        self._space = f"texts {encoder.fingerprint}"
        self._stage = "encoding nouns" if tuple(prompts) == PLAIN else "encoding phrases"
        is_list = tuple(prompts) == PLAIN and len(nouns) >= _LONG_LIST
        self._is_list, self._nouns, self._prompts = is_list, nouns, check_prompts(prompts)
        self._joined = store.read_joined(self._space, nouns) if is_list else None
        self._keys: list[list[str]] = []
        phrases: dict[str, tuple[str, str]] = {}
        for template in self._prompts if self._joined is None else ():
            self._keys.append([text_key(text) for text in fill_template(template, nouns)])
            phrases |= zip(self._keys[-1], ((template, noun) for noun in nouns), strict=True)
        distinct = list(phrases)
        missing = self._find_missing(distinct)
        order = np.random.default_rng(0).permutation(missing)
        self._todo = [(distinct[i], *phrases[distinct[i]]) for i in order]
        self._ends = batch_ends(len(missing), _FIRST_BATCH, _LARGEST_BATCH)
        self.n_left = len(missing)

    def try_some(self, seconds: float) -> float:
        """Encode some texts, for about this long after the model is loaded; return their pace."""
        return seconds_per_item(self._run_batch, seconds)

    def finish(self) -> list[NDArray[np.float32]]:
        """Encode the rest, and return the features of all texts, one array per prompt."""
        total = len(self._todo)
        if self.n_left:
            self._report(self._stage, 0, total)
        while self._run_batch():
            self._report(self._stage, total - self.n_left, total)
        if self._joined is not None:
            return [self._joined]
        rows = [self._read(*pair) for pair in zip(self._prompts, self._keys, strict=True)]
        if self._is_list:
            self._store.join(self._space, self._nouns, rows[0])
        return rows

    def _find_missing(self, keys: list[str]) -> list[int]:
        missing: list[int] = []
        for start in range(0, len(keys), _ROWS_AT_ONCE):
            if start:
                self._report("looking up words", start, len(keys))
            found = self._store.missing(self._space, keys[start : start + _ROWS_AT_ONCE])
            missing += [start + position for position in found]
        return missing

    def _read(self, template: str, keys: list[str]) -> NDArray[np.float32]:
        """Read the features of all nouns in a prompt."""
        found = np.empty((len(keys), self._encoder.text_dim), np.float32)
        for start in range(0, len(keys), _ROWS_AT_ONCE):
            if start:
                self._report("reading nouns", start, len(keys))
            part = slice(start, start + _ROWS_AT_ONCE)
            encode = partial(self._encode_again, template, self._nouns[part], keys[part])
            found[part] = read_or_encode(self._store, self._space, keys[part], encode)
        return found

    def _encode_again(
        self, template: str, nouns: Sequence[str], keys: Sequence[str], gone: Sequence[str]
    ) -> NDArray[np.float32]:
        noun_of = dict(zip(keys, nouns, strict=True))
        return self._encoder.encode_nouns([noun_of[key] for key in gone], template)

    def _run_batch(self) -> int:
        if not self.n_left:
            return 0
        start = len(self._todo) - self.n_left
        part = self._todo[start : next(end for end in self._ends if end > start)]
        for template, phrases in groupby(sorted(part, key=_template), key=_template):
            keys, _, nouns = zip(*phrases, strict=True)
            rows = self._encoder.encode_nouns(nouns, template)
            self._store.append(self._space, keys, rows)
        self.n_left -= len(part)
        return len(part)


def _template(phrase: tuple[str, str, str]) -> str:
    return phrase[1]
