"""Features of a data set's images: read from the store, or encoded where they are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import atomic_file, explained_writing
from nouncut.compute.progress import Progress, silent
from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError, InputError
from nouncut.images.find import SkippedFile
from nouncut.models.encoder import Encoder
from nouncut.paper.bench.setup import BenchSetup
from nouncut.paper.datasets.dataset import ImageSource
from nouncut.runs.encode import EncodedImages, image_space

_IMAGES_AT_ONCE = 64
_KEYS_AT_ONCE = 4096


class EncodedSource(NamedTuple):
    """The images of a source that have features, and their positions in the source."""

    images: EncodedImages
    kept: NDArray[np.intp]


def source_keys(source: ImageSource, folder: Path, progress: Progress = silent) -> list[str]:
    """Return the keys of a source's images; its files are read only if they are new or changed."""
    path = folder / f"keys-{source.stamp()}.npy"
    if path.exists():
        stored: list[str] = np.load(path, allow_pickle=False).tolist()
        return stored
    keys: list[str] = []
    for start in range(0, len(source), _KEYS_AT_ONCE):
        stop = min(len(source), start + _KEYS_AT_ONCE)
        keys += run_tasks(source.key, range(start, stop), count_threads(-1))
        progress("reading files", stop, len(source))
    with explained_writing("results", folder, "choose another `output`"):
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            np.save(file, np.array(keys), allow_pickle=False)
    return keys


def encode_source(source: ImageSource, keys: Sequence[str], setup: BenchSetup) -> EncodedSource:
    """Encode the images that have no features yet; images that cannot be opened are left out."""
    encoder, store = setup.encoder, setup.store
    space = image_space(encoder)
    missing = store.missing(space, keys)
    skipped: list[SkippedFile] = []
    done = 0
    for batch in _prepared_batches(source, missing, encoder):
        good = [(i, array) for i, array in batch if not isinstance(array, ImageError)]
        bad = [(i, error) for i, error in batch if isinstance(error, ImageError)]
        skipped.extend(SkippedFile(source.path(i), error.reason) for i, error in bad)
        if good:
            rows = encoder.encode_prepared(np.stack([array for _, array in good]))
            store.append(space, [keys[i] for i, _ in good], rows)
        done += len(batch)
        setup.progress("encoding images", done, len(missing))
    broken = {keys[i] for i in store.missing(space, keys)}
    kept = np.array([i for i, key in enumerate(keys) if key not in broken], dtype=np.intp)
    if not len(kept):
        raise InputError(f"None of {len(keys)} images can be opened: {skipped[0].reason}.")
    images = EncodedImages(
        paths=tuple(source.path(int(i)) for i in kept),
        skipped=tuple(skipped),
        n_encoded=len(missing) - len(skipped),
        hashes=tuple(keys[i] for i in kept),
        encoder=encoder,
        store=store,
    )
    return EncodedSource(images, kept)


def _prepared_batches(
    source: ImageSource, indices: Sequence[int], encoder: Encoder
) -> Iterator[list[tuple[int, Any]]]:
    """Yield batches of prepared images; the next batch is prepared while the model runs."""

    def prepare(index: int) -> NDArray[np.float32] | ImageError:
        try:
            return encoder.prepare(source.open(index))
        except ImageError as error:
            return error

    waiting: list[tuple[int, Future[Any]]] = []
    with ThreadPoolExecutor(count_threads(-1)) as pool:
        for start in range(0, len(indices), _IMAGES_AT_ONCE):
            part = indices[start : start + _IMAGES_AT_ONCE]
            begun = [(i, pool.submit(prepare, i)) for i in part]
            if waiting:
                yield [(i, future.result()) for i, future in waiting]
            waiting = begun
        if waiting:
            yield [(i, future.result()) for i, future in waiting]
