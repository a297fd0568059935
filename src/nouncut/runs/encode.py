"""Images and nouns into stored features; nothing is encoded twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.compute.progress import Progress, silent
from nouncut.compute.threads import count_threads, run_tasks
from nouncut.errors import ImageError, InputError, printable_path
from nouncut.images.find import ImageScan, SkippedFile, scan_images
from nouncut.images.hashing import content_hash
from nouncut.images.read_ahead import load_ahead
from nouncut.models.encoder import Encoder
from nouncut.store.store import FeatureStore, text_key
from nouncut.words.prompts import check_prompts, fill_template

# Few enough that a killed run loses only seconds of work.
_IMAGES_AT_ONCE = 64
_TEXTS_AT_ONCE = 8192
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class ImageSet:
    """Images in the order of their features; hashes identify their contents."""

    paths: tuple[str | Path, ...]
    hashes: tuple[str, ...] | None = field(repr=False)
    skipped: tuple[SkippedFile, ...]


@dataclass(frozen=True)
class EncodedImages(ImageSet):
    """Images whose features are in the store; `encode_images` makes one.

    Attributes
    ----------
    paths : tuple of Path
        The images, in the order of their features.
    hashes : tuple of str
        Hashes of the images' contents.
    skipped : tuple of SkippedFile
        Files without features, and why.
    n_encoded : int
        How many images went through the model this time; the others were stored already.
    """

    paths: tuple[Path, ...]
    n_encoded: int
    encoder: Encoder = field(repr=False)
    store: FeatureStore = field(repr=False)

    def visual(self, center: NDArray[Any] | None = None) -> NDArray[np.float32]:
        """Return the features for comparing images.

        Parameters
        ----------
        center : ndarray of shape (d,), optional
            What to subtract if the encoder's features are to be centred; by default the mean of
            these images. New images need the centre of the images that they are compared with.

        Returns
        -------
        ndarray of shape (n_images, d)
            Visual features.
        """
        features = self._read(self.encoder.visual)
        if self.encoder.centers_visual:
            features -= features.mean(axis=0, dtype=np.float64) if center is None else center
        return features

    def visual_center(self) -> NDArray[np.float32]:
        """Return the mean of the visual features before centring.

        Returns
        -------
        ndarray of shape (d,)
            The mean.
        """
        return np.asarray(self._read(self.encoder.visual).mean(axis=0, dtype=np.float64))

    def semantic(self) -> NDArray[np.float32]:
        """Return the features for comparing images with nouns.

        Returns
        -------
        ndarray of shape (n_images, text_dim)
            Semantic features.
        """
        return self._read(self.encoder.semantic)

    def _read(self, view: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[np.float32]:
        space, store = image_space(self.encoder), self.store
        batches = _batches(self.hashes or (), _ROWS_AT_ONCE)
        parts = (view(store.read(space, list(keys))) for keys in batches)
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

    Images are identified by their content: moved, renamed and repeated ones are not encoded
    again. A killed run continues where it stopped. Files that cannot be opened are skipped and
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
        Called with the stage ("reading files", "encoding images"), the number done and the total.
    n_jobs : int, default=-1
        Threads that open images ahead of the model; all cores by default.

    Returns
    -------
    EncodedImages
        The images with their features.

    Raises
    ------
    nouncut.errors.InputError
        If no image can be opened.

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
    images = hash_images(scan_images(paths), progress=progress, n_jobs=n_jobs)
    return encode_missing(images, encoder, store, progress=progress, n_jobs=n_jobs)


def hash_images(
    scan: ImageScan, *, progress: Progress | None = None, n_jobs: int | None = -1
) -> ImageSet:
    """Hash the contents of image files; those that cannot be read are skipped."""
    hashes: dict[Path, str] = {}
    unreadable: list[SkippedFile] = []

    def read(path: Path) -> None:
        try:
            hashes[path] = content_hash(path)
        except ImageError as error:
            unreadable.append(SkippedFile(path, error.reason))

    report, files = progress or silent, scan.files
    for start in range(0, len(files), _ROWS_AT_ONCE):
        run_tasks(read, files[start : start + _ROWS_AT_ONCE], count_threads(n_jobs))
        report("reading files", min(len(files), start + _ROWS_AT_ONCE), len(files))
    paths = tuple(path for path in files if path in hashes)
    skipped = (*scan.skipped, *sorted(unreadable, key=lambda file: str(file.path)))
    return ImageSet(paths, tuple(hashes[path] for path in paths), skipped)


def missing_images(images: ImageSet, encoder: Encoder, store: FeatureStore) -> list[int]:
    """Return the positions of images without stored features, each content once."""
    return list(store.missing(image_space(encoder), images.hashes or ()))


def encode_missing(
    images: ImageSet,
    encoder: Encoder,
    store: FeatureStore,
    *,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> EncodedImages:
    """Encode the images without stored features; those that cannot be opened are skipped."""
    hashes = images.hashes or ()
    missing = missing_images(images, encoder, store)
    todo = {Path(images.paths[i]): hashes[i] for i in missing}
    broken: list[SkippedFile] = []
    n_encoded = 0
    batches = _prepared_batches(list(todo), encoder, progress or silent, count_threads(n_jobs))
    for good, bad in batches:
        broken.extend(bad)
        if good:
            rows = encoder.encode_prepared(np.stack([array for _, array in good]))
            store.append(image_space(encoder), [todo[path] for path, _ in good], rows)
            n_encoded += len(good)
    kept, skipped = _without_broken(images, {todo[file.path]: file.reason for file in broken})
    return EncodedImages(
        tuple(Path(images.paths[i]) for i in kept),
        tuple(hashes[i] for i in kept),
        (*images.skipped, *skipped),
        n_encoded,
        encoder,
        store,
    )


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
        Called with the stage ("encoding nouns"), the number of texts done and the total.

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
    (2, (2, 384))
    """
    store = store or FeatureStore()
    report = progress or silent
    space = _text_space(encoder)
    missing = missing_texts(nouns, prompts, encoder, store)
    done = 0
    for part in _batches(missing, _TEXTS_AT_ONCE):
        store.append(space, [text_key(text) for text in part], encoder.encode_texts(part))
        done += len(part)
        report("encoding nouns", done, len(missing))
    return [store.read(space, [text_key(text) for text in part]) for part in _fill(prompts, nouns)]


def missing_texts(
    nouns: Sequence[str], prompts: Sequence[str], encoder: Encoder, store: FeatureStore
) -> list[str]:
    """Return the filled prompts without stored features, each once."""
    texts = list(dict.fromkeys(text for part in _fill(prompts, nouns) for text in part))
    keys = [text_key(text) for text in texts]
    return [texts[i] for i in store.missing(_text_space(encoder), keys)]


def image_space(encoder: Encoder) -> str:
    """Return the name of the encoder's image features in the store."""
    return f"images {encoder.fingerprint}"


def _text_space(encoder: Encoder) -> str:
    return f"texts {encoder.fingerprint}"


def _fill(prompts: Sequence[str], nouns: Sequence[str]) -> list[list[str]]:
    return [fill_template(template, nouns) for template in check_prompts(prompts)]


def _prepared_batches(
    files: Sequence[Path], encoder: Encoder, report: Progress, n_threads: int
) -> Iterator[tuple[list[tuple[Path, NDArray[Any]]], list[SkippedFile]]]:
    """Yield batches of prepared images, with the files that could not be opened."""
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


def _without_broken(
    images: ImageSet, reasons: dict[str, str]
) -> tuple[list[int], list[SkippedFile]]:
    """Return the images with features, and the broken ones with their copies."""
    hashes = images.hashes or ()
    kept = [i for i, key in enumerate(hashes) if key not in reasons]
    skipped = [
        SkippedFile(Path(path), reasons[key])
        for path, key in zip(images.paths, hashes, strict=True)
        if key in reasons
    ]
    if not kept:
        first = (*images.skipped, *skipped)[0]
        raise InputError(
            f"None of {len(hashes)} image files can be opened; the first, "
            f"{printable_path(first.path)}: {first.reason}."
        )
    return kept, skipped


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
