"""Reading stored rows; those that another process removes during a run are encoded again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.errors import ImageError, InputError, printable_path
from nouncut.images.hashing import image_hash
from nouncut.images.open import DECODE_MARGIN, open_image
from nouncut.models.encoder import ImageEncoder
from nouncut.store.read_rows import read_rows
from nouncut.store.store import FeatureStore

# Small groups: the images of one are in memory at once.
_GROUP = 8


def read_or_encode(
    store: FeatureStore,
    space: str,
    keys: Sequence[str],
    encode: Callable[[Sequence[str]], NDArray[Any]],
) -> NDArray[Any]:
    """Read the rows of keys, after `encode` has made those that are no longer stored.

    They are stored again for others, but never read back: they could be gone once more.
    """
    vectors, missing = read_rows(store.root, space, keys)
    if vectors is not None and not missing:
        return vectors
    gone = list(dict.fromkeys(keys[i] for i in missing))
    rows = np.asarray(encode(gone), np.float32)
    store.append(space, gone, rows)
    if vectors is None:
        vectors = np.empty((len(keys), rows.shape[1]), np.float32)
    position = {key: number for number, key in enumerate(gone)}
    vectors[missing] = rows[[position[keys[i]] for i in missing]]
    return vectors


def encode_files(
    encoder: ImageEncoder, paths: Sequence[Path], hashes: Sequence[str]
) -> NDArray[np.float32]:
    """Encode image files, unless their contents have other hashes by now."""
    parts = [np.empty((0, encoder.image_dim), np.float32)]
    for start in range(0, len(hashes), _GROUP):
        group = slice(start, start + _GROUP)
        files = zip(paths[group], hashes[group], strict=True)
        batch = np.stack([_prepare(encoder, path, key) for path, key in files])
        parts.append(encoder.encode_prepared(batch))
    return np.concatenate(parts)


def _prepare(encoder: ImageEncoder, path: Path, expected: str) -> NDArray[Any]:
    side = encoder.input_side
    try:
        is_same = image_hash(path) == expected
        image = open_image(path, min_side=None if side is None else DECODE_MARGIN * side)
    except ImageError as error:
        raise InputError(_changed(path, error.reason)) from error
    if not is_same:
        raise InputError(_changed(path, "it is another image now"))
    return encoder.prepare(image)


def _changed(path: Path, reason: str) -> str:
    return (
        f"{printable_path(path)} has changed during the run ({reason}), and its stored features "
        "were removed. Run the same command again."
    )
