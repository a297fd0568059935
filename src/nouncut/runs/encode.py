"""Images into stored features; nothing is encoded twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.compute.progress import Progress, silent
from nouncut.compute.rows import Projection
from nouncut.compute.threads import count_threads
from nouncut.errors import ImageError, ParameterError
from nouncut.images.find import SkippedFile, scan_images
from nouncut.images.open import DECODE_MARGIN
from nouncut.images.read_ahead import load_ahead
from nouncut.models.encoder import Encoder, ImageEncoder
from nouncut.runs.batches import batch_ends, seconds_per_item
from nouncut.runs.encode_again import encode_files, read_or_encode
from nouncut.runs.image_set import ImageSet, check_any_opens, hash_images
from nouncut.store.store import FeatureStore

# Images are encoded in whole groups, so that features depend neither on the number of threads nor
# on when a trial ended: models may round differently in batches of other sizes.
_GROUP = 8
# Several groups at once keep all threads busy. More images would only take memory, and a killed run
# would lose more work.
_PER_THREAD, _LEAST, _MOST = 2 * _GROUP, 4 * _GROUP, 32 * _GROUP
_ROWS_AT_ONCE = 4096
# More images hardly change their principal components.
_IMAGES_FOR_VIEW = 20_000
_STAGE = "encoding images"


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
    encoder: ImageEncoder = field(repr=False)
    store: FeatureStore = field(repr=False)
    # Encoders that compare images with each other, if it is not `encoder`.
    looks: tuple[ImageEncoder, ...] = field(repr=False, default=())

    def visual(self, view: Projection | None = None) -> NDArray[np.float32]:
        """Return the features for comparing images.

        Parameters
        ----------
        view : Projection, optional
            What `visual_view` of other images returned: new images need the view of the images
            that they are compared with. By default that of these images.

        Returns
        -------
        ndarray of shape (n_images, d)
            Visual features.
        """
        return self._visual(self.encoder, view or self.visual_view())

    def visual_view(self) -> Projection | None:
        """Return the half-whitening of the visual features.

        Returns
        -------
        Projection or None
            None if the encoder's visual features are compared as they are.
        """
        return self._view(self.encoder)

    def semantic(self) -> NDArray[np.float32]:
        """Return the features for comparing images with nouns.

        Returns
        -------
        ndarray of shape (n_images, text_dim)
            Semantic features.
        """
        return self._read(self.encoder, self._semantic_view())

    def rows(self, indices: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return what the encoder made of some images, as it is stored.

        Parameters
        ----------
        indices : ndarray of int of shape (n,)
            Numbers of images.

        Returns
        -------
        ndarray of shape (n, image_dim)
            The stored rows.
        """
        keys = self.hashes or ()
        return self._stored(self.encoder, [keys[i] for i in indices])

    def features(
        self, views: Sequence[Projection | None] | None = None
    ) -> tuple[list[NDArray[np.float32]], NDArray[np.float32], list[Projection | None]]:
        """Return all features, and how the visual ones are viewed.

        Parameters
        ----------
        views : sequence of Projection or None, optional
            As for `visual`, one per encoder that compares images.

        Returns
        -------
        tuple of list of ndarray, ndarray, and list of Projection or None
            Visual features of every encoder, semantic features of shape (n_images, text_dim), and
            the views of the encoders.
        """
        encoders = self.looks or (self.encoder,)
        views = [self._view(encoder) for encoder in encoders] if views is None else list(views)
        parts = [self._visual(*pair) for pair in zip(encoders, views, strict=True)]
        return parts, self.semantic(), views

    def visual_lengths(self, view: Projection) -> NDArray[np.float32]:
        """Return the lengths of the visual features before they are projected.

        Parameters
        ----------
        view : Projection
            What `visual_view` returned.

        Returns
        -------
        ndarray of shape (n_images,)
            Lengths relative to the view's centre.
        """
        return self._read(
            self.encoder, lambda rows: view.lengths(self.encoder.visual(rows))[:, None]
        ).ravel()

    def _view(self, encoder: ImageEncoder) -> Projection | None:
        if not encoder.whitens_visual or not self.hashes:
            return None
        # SciPy takes a while to import.
        from nouncut.method.whitening import half_whitening

        n = len(self.hashes)
        picked = np.unique(np.linspace(0, n - 1, min(n, _IMAGES_FOR_VIEW)).astype(np.intp))
        keys = [self.hashes[i] for i in picked]
        return half_whitening(self._read(encoder, encoder.visual, keys))

    def _visual(self, encoder: ImageEncoder, view: Projection | None) -> NDArray[np.float32]:
        if view is None:
            return self._read(encoder, encoder.visual)
        return self._read(encoder, lambda rows: view(encoder.visual(rows)))

    def _semantic_view(self) -> Callable[[NDArray[Any]], NDArray[Any]]:
        if isinstance(self.encoder, Encoder):
            return self.encoder.semantic
        raise ParameterError(
            f"{self.encoder.name} encodes images alone: words need a `model` that reads texts."
        )

    def _read(
        self,
        encoder: ImageEncoder,
        view: Callable[[NDArray[Any]], NDArray[Any]],
        keys: Sequence[str] | None = None,
    ) -> NDArray[np.float32]:
        """Return a view of the stored rows, of all images by default."""
        keys = (self.hashes or ()) if keys is None else keys
        found = np.empty((0, 0), np.float32)
        for start in range(0, len(keys), _ROWS_AT_ONCE):
            part = view(self._stored(encoder, keys[start : start + _ROWS_AT_ONCE]))
            if not start:
                found = np.empty((len(keys), part.shape[1]), np.float32)
            found[start : start + len(part)] = part
        return found

    def _stored(self, encoder: ImageEncoder, keys: Sequence[str]) -> NDArray[Any]:
        def encode(gone: Sequence[str]) -> NDArray[np.float32]:
            paths = dict(zip(self.hashes or (), self.paths, strict=True))
            return encode_files(encoder, [paths[key] for key in gone], gone)

        return read_or_encode(self.store, image_space(encoder), keys, encode)


def encode_images(
    paths: AnyPath | Iterable[AnyPath],
    encoder: ImageEncoder,
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
    encoder : ImageEncoder
        The model; an `Encoder` for semantic features.
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
    (2, 0, (2, 1))
    """
    store = store or FeatureStore()
    images = hash_images(scan_images(paths), store, progress=progress, n_jobs=n_jobs)
    return ImageEncoding(images, encoder, store, progress=progress, n_jobs=n_jobs).finish()


class Trial(NamedTuple):
    """What a short trial has shown about the files that are left."""

    share_opened: float
    seconds_per_file: float
    # Size of a prepared image.
    n_bytes: int


class ImageEncoding:
    """Encodes the images without stored features; those that cannot be opened are skipped.

    Files are taken in random order, so that the first of them tell how long all will take.
    """

    def __init__(
        self,
        images: ImageSet,
        encoder: ImageEncoder,
        store: FeatureStore,
        *,
        progress: Progress | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self._images, self._encoder, self._store = images, encoder, store
        self._report = progress or silent
        missing = store.missing(image_space(encoder), images.hashes or ())
        self._todo: list[int] = np.random.default_rng(0).permutation(missing).tolist()
        self._n_threads = count_threads(n_jobs) if missing else 1
        self.images_at_once = min(max(_LEAST, _PER_THREAD * self._n_threads), _MOST)
        self._ends = batch_ends(len(missing), _GROUP, self.images_at_once)
        self.n_encoded = self._n_opened = self._n_bytes = 0
        self._waiting: list[tuple[str, NDArray[Any]]] = []
        self._broken: dict[str, str] = {}

    @property
    def visual_dim(self) -> int:
        """Length of the features that compare images with each other."""
        return visual_dim(self._encoder)

    @property
    def n_left(self) -> int:
        """Number of files that are still to be opened."""
        return len(self._todo) - self._n_opened

    def try_some(self, seconds: float) -> Trial:
        """Encode some images, for about this long after the model is loaded."""
        pace = seconds_per_item(self._run_batch, seconds)
        share = 1 - len(self._broken) / max(1, self._n_opened)
        return Trial(share, pace, self._n_bytes)

    def finish(self, may_be_none: bool = False) -> EncodedImages:
        """Encode the rest, and return all images that have features; raise if none has."""
        self._run(len(self._todo))
        hashes = self._images.hashes or ()
        kept, skipped = _without_broken(self._images, self._broken)
        if not may_be_none:
            check_any_opens(len(hashes), skipped)
        return EncodedImages(
            tuple(Path(self._images.paths[i]) for i in kept),
            tuple(hashes[i] for i in kept),
            (*self._images.skipped, *skipped),
            self.n_encoded,
            self._encoder,
            self._store,
        )

    def _run_batch(self) -> int:
        before = self._n_opened
        self._run(next((end for end in self._ends if end > before), before))
        return self._n_opened - before

    def _run(self, end: int) -> None:
        """Open and encode files up to a position."""
        first, hashes, ends = self._n_opened, self._images.hashes or (), set(self._ends)
        todo = self._todo[first:end]
        if todo and not first:
            self._report(_STAGE, 0, len(self._todo))
        paths = [self._images.paths[i] for i in todo]
        side = self._encoder.input_side
        loaded = load_ahead(
            paths,
            self._encoder.prepare,
            n_threads=self._n_threads,
            ahead=self.images_at_once,
            min_side=None if side is None else DECODE_MARGIN * side,
        )
        for position, result in loaded:
            key = hashes[todo[position]]
            if isinstance(result, ImageError):
                self._broken[key] = result.reason
            else:
                self._waiting.append((key, result))
            if first + position + 1 in ends:
                self._n_opened = first + position + 1
                self._encode_waiting()
                self._report(_STAGE, self._n_opened, len(self._todo))

    def _encode_waiting(self) -> None:
        """Encode whole groups of the images that wait; at the end, all of them."""
        n = len(self._waiting) if not self.n_left else len(self._waiting) // _GROUP * _GROUP
        if not n:
            return
        keys = [key for key, _ in self._waiting[:n]]
        batch = np.stack([array for _, array in self._waiting[:n]])
        # The single arrays need as much memory as the batch.
        del self._waiting[:n]
        self._n_bytes = batch.nbytes // n
        rows = self._encoder.encode_prepared(batch)
        self._store.append(image_space(self._encoder), keys, rows)
        self.n_encoded += n


def visual_dim(encoder: ImageEncoder) -> int:
    """Return the length of an encoder's features that compare images with each other."""
    from nouncut.method.whitening import N_COMPONENTS

    return min(encoder.image_dim, N_COMPONENTS) if encoder.whitens_visual else encoder.image_dim


def image_space(encoder: ImageEncoder) -> str:
    """Return the name of the encoder's image features in the store."""
    return f"images {encoder.fingerprint}"


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
    return kept, skipped
