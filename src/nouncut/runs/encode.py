"""From files and words to features: what is stored is read, only the rest is encoded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.progress import Progress, silent
from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError, InputError, printable_path
from nouncut.images.find import ImageScan, SkippedFile, scan_images
from nouncut.images.hashing import content_hash
from nouncut.images.read_ahead import load_ahead
from nouncut.models.encoder import Encoder
from nouncut.store.keys import text_key
from nouncut.store.store import FeatureStore
from nouncut.words.prompts import check_templates, fill_template

AnyPath = str | os.PathLike[str]

# Stored together: few enough that a killed run loses seconds of work.
_IMAGES_AT_ONCE = 64
_TEXTS_AT_ONCE = 8192
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class EncodedImages:
    """Images whose features are in the store.

    Parameters
    ----------
    paths : tuple of Path
        The images, in the order of their features.
    skipped : tuple of SkippedFile
        Files that gave no features, and why.
    n_encoded : int
        How many went through the model this time; the others were stored already.
    hashes : tuple of str
        What every image is known by: the hash of its content.
    """

    paths: tuple[Path, ...]
    skipped: tuple[SkippedFile, ...]
    n_encoded: int
    hashes: tuple[str, ...] = field(repr=False)
    _encoder: Encoder = field(repr=False)
    _store: FeatureStore = field(repr=False)

    def visual(self, center: NDArray[Any] | None = None) -> NDArray[np.float32]:
        """Return the features that images are compared by.

        Parameters
        ----------
        center : ndarray of shape (d,), optional
            What to subtract where the encoder's features want to be centred; by default the mean
            of these images. New images need the centre of those they are compared with.

        Returns
        -------
        ndarray of shape (n_images, d)
            Visual features.
        """
        features = self._read(self._encoder.visual)
        if self._encoder.centers_visual:
            features -= features.mean(axis=0, dtype=np.float64) if center is None else center
        return features

    def visual_center(self) -> NDArray[np.float32]:
        """Return the mean of the visual features before centring.

        Returns
        -------
        ndarray of shape (d,)
            The mean.
        """
        return np.asarray(self._read(self._encoder.visual).mean(axis=0, dtype=np.float64))

    def semantic(self) -> NDArray[np.float32]:
        """Return the features that are compared with nouns.

        Returns
        -------
        ndarray of shape (n_images, text_dim)
            Semantic features.
        """
        return self._read(self._encoder.semantic)

    def _read(self, view: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[np.float32]:
        space = _image_space(self._encoder)
        parts = (
            view(self._store.read(space, list(keys)))
            for keys in _batches(self.hashes, _ROWS_AT_ONCE)
        )
        return np.concatenate([part.astype(np.float32, copy=False) for part in parts])


def encode_images(
    paths: AnyPath | Iterable[AnyPath],
    encoder: Encoder,
    store: FeatureStore | None = None,
    *,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> EncodedImages:
    """Encode the images in folders, files, patterns or list files.

    Images are known by their content: moved, renamed and repeated ones are not encoded again.
    A run that was killed goes on where it stopped. Files that cannot be opened are skipped and
    listed.

    Parameters
    ----------
    paths : path or iterable of path
        What `nouncut.images.find.scan_images` takes.
    encoder : Encoder
        The model.
    store : FeatureStore, optional
        Where features are kept; the user's cache by default.
    progress : callable, optional
        Called with the stage ("reading files", "encoding images"), the number done and of all.
    n_jobs : int, default=-1
        Threads that open images ahead of the model; all cores by default.

    Returns
    -------
    EncodedImages
        The images with their features.

    Raises
    ------
    nouncut.errors.InputError
        If there is no image that can be opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from nouncut import encode_images
    >>> from nouncut.models.choose import load_encoder
    >>> from nouncut.store.store import FeatureStore
    >>> encoder = load_encoder("mini", device="cpu").encoder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for colour in ("red", "green"):
    ...         Image.new("RGB", (64, 48), colour).save(Path(folder, f"{colour}.png"))
    ...     store = FeatureStore(Path(folder, "cache"))
    ...     first = encode_images(folder, encoder, store)
    ...     again = encode_images(folder, encoder, store)
    ...     first.n_encoded, again.n_encoded, again.visual().shape
    (2, 0, (2, 1000))
    """
    store = store or FeatureStore()
    found = find_images(scan_images(paths), encoder, store, progress=progress, n_jobs=n_jobs)
    return encode_found(found, encoder, store, progress=progress, n_jobs=n_jobs)


@dataclass(frozen=True)
class FoundImages:
    """Image files whose content has been read, but that may have no features yet."""

    paths: tuple[Path, ...]
    hashes: tuple[str, ...] = field(repr=False)
    skipped: tuple[SkippedFile, ...]
    missing: tuple[int, ...] = field(repr=False)


def find_images(
    scan: ImageScan,
    encoder: Encoder,
    store: FeatureStore,
    *,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> FoundImages:
    """Find which images have no features yet."""
    keys, skipped = _hash_files(scan.files, progress or silent, count_threads(n_jobs))
    files = tuple(path for path in scan.files if path in keys)
    hashes = tuple(keys[path] for path in files)
    missing = tuple(store.missing(_image_space(encoder), hashes))
    return FoundImages(files, hashes, (*scan.skipped, *skipped), missing)


def encode_found(
    found: FoundImages,
    encoder: Encoder,
    store: FeatureStore,
    *,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> EncodedImages:
    """Encode the images that have no features yet."""
    todo = [found.paths[i] for i in found.missing]
    keys = [found.hashes[i] for i in found.missing]
    hash_of = dict(zip(todo, keys, strict=True))
    skipped = list(found.skipped)
    n_encoded = 0
    batches = _prepared_batches(todo, encoder, progress or silent, count_threads(n_jobs))
    for good, bad in batches:
        skipped.extend(bad)
        if good:
            rows = encoder.encode_prepared(np.stack([array for _, array in good]))
            store.append(_image_space(encoder), [hash_of[path] for path, _ in good], rows)
            n_encoded += len(good)
    return _collect(found, tuple(skipped), n_encoded, encoder, store)


def encode_nouns(
    nouns: Sequence[str],
    templates: Sequence[str],
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
    templates : sequence of str
        Prompts, each with one ``{}`` for the noun; "{}" is the noun alone.
    encoder : Encoder
        The model.
    store : FeatureStore, optional
        Where features are kept; the user's cache by default.
    progress : callable, optional
        Called with the stage ("encoding nouns"), the number of texts done and of all.

    Returns
    -------
    list of ndarray of shape (n_nouns, text_dim)
        Unit rows, one array per template.

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
    (2, (2, 384))
    """
    store = store or FeatureStore()
    report = progress or silent
    space = _text_space(encoder)
    missing = missing_texts(nouns, templates, encoder, store)
    done = 0
    for part in _batches(missing, _TEXTS_AT_ONCE):
        store.append(space, [text_key(text) for text in part], encoder.encode_texts(part))
        done += len(part)
        report("encoding nouns", done, len(missing))
    return [
        store.read(space, [text_key(text) for text in part]) for part in _fill(templates, nouns)
    ]


def missing_texts(
    nouns: Sequence[str], templates: Sequence[str], encoder: Encoder, store: FeatureStore
) -> list[str]:
    """Return the texts that have no features yet."""
    texts = list(dict.fromkeys(text for part in _fill(templates, nouns) for text in part))
    keys = [text_key(text) for text in texts]
    return [texts[i] for i in store.missing(_text_space(encoder), keys)]


def _fill(templates: Sequence[str], nouns: Sequence[str]) -> list[list[str]]:
    return [fill_template(template, nouns) for template in check_templates(templates)]


def _hash_files(
    files: Sequence[Path], report: Progress, n_threads: int
) -> tuple[dict[Path, str], list[SkippedFile]]:
    keys: dict[Path, str] = {}
    skipped: list[SkippedFile] = []

    def read(path: Path) -> None:
        try:
            keys[path] = content_hash(path)
        except ImageError as error:
            skipped.append(SkippedFile(path, error.reason))

    for start in range(0, len(files), _ROWS_AT_ONCE):
        run_tasks(read, files[start : start + _ROWS_AT_ONCE], n_threads)
        report("reading files", min(len(files), start + _ROWS_AT_ONCE), len(files))
    return keys, sorted(skipped, key=lambda file: str(file.path))


def _prepared_batches(
    files: Sequence[Path], encoder: Encoder, report: Progress, n_threads: int
) -> Iterator[tuple[list[tuple[Path, NDArray[Any]]], list[SkippedFile]]]:
    """Yield prepared images batch by batch, with the files that could not be opened."""
    good: list[tuple[Path, NDArray[Any]]] = []
    bad: list[SkippedFile] = []
    loaded = load_ahead(files, encoder.prepare, n_threads=n_threads, ahead=2 * _IMAGES_AT_ONCE)
    for position, result in loaded:
        if isinstance(result, ImageError):
            bad.append(SkippedFile(files[position], result.reason))
        else:
            good.append((files[position], result))
        if len(good) == _IMAGES_AT_ONCE or position == len(files) - 1:
            yield good, bad
            report("encoding images", position + 1, len(files))
            good, bad = [], []


def _collect(
    found: FoundImages,
    skipped: tuple[SkippedFile, ...],
    n_encoded: int,
    encoder: Encoder,
    store: FeatureStore,
) -> EncodedImages:
    """Return the files that have features now; copies of broken files are broken too."""
    pairs = list(zip(found.paths, found.hashes, strict=True))
    broken = {found.hashes[i] for i in store.missing(_image_space(encoder), found.hashes)}
    reasons = {file.path: file.reason for file in skipped}
    by_hash = {key: reasons[path] for path, key in pairs if path in reasons}
    copies = [
        SkippedFile(path, by_hash[key])
        for path, key in pairs
        if key in broken and path not in reasons
    ]
    stored = [(path, key) for path, key in pairs if key not in broken]
    if not stored:
        first = (*skipped, *copies)[0]
        raise InputError(
            f"None of {len(pairs)} image files can be opened; the first, "
            f"{printable_path(first.path)}: {first.reason}."
        )
    return EncodedImages(
        paths=tuple(path for path, _ in stored),
        skipped=(*skipped, *copies),
        n_encoded=n_encoded,
        hashes=tuple(key for _, key in stored),
        _encoder=encoder,
        _store=store,
    )


def _image_space(encoder: Encoder) -> str:
    return f"images {encoder.fingerprint}"


def _text_space(encoder: Encoder) -> str:
    return f"texts {encoder.fingerprint}"


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
