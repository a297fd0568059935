"""Encoders that compare images with each other, beside the model that compares them with words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nouncut.errors import ParameterError
from nouncut.images.find import ImageScan
from nouncut.models.choose import ChosenEncoder, load_image_encoder
from nouncut.models.encoder import ImageEncoder
from nouncut.runs.encode import EncodedImages, ImageEncoding, Trial, visual_dim
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.sources import Source


def choose_looks(source: Source, job: Job) -> tuple[ImageEncoder, ...]:
    """Return the encoders that the user names for comparing images; none by default."""
    names = job.settings.looks or ()
    if names and not isinstance(source, ImageScan):
        raise ParameterError("`looks` needs images: leave it out for a file of features.")
    return tuple(load_image_encoder(name, progress=job.progress).encoder for name in names)


def fingerprints(model: ChosenEncoder | None, looks: Sequence[ImageEncoder]) -> list[str]:
    """Return what identifies the models of a run."""
    return [encoder.fingerprint for encoder in ((model.encoder,) if model else ()) + tuple(looks)]


def start_encoding(
    images: ImageSet, model: ChosenEncoder | None, looks: Sequence[ImageEncoder], job: Job
) -> ImageEncoding | SeveralEncodings | None:
    """Find the images that are still to be encoded; None for a file of features."""
    if images.hashes is None or model is None:
        return None
    encodings = [
        ImageEncoding(images, encoder, job.store, progress=job.progress, n_jobs=job.n_jobs)
        for encoder in (model.encoder, *looks)
    ]
    return SeveralEncodings(encodings, looks) if looks else encodings[0]


class SeveralEncodings:
    """The encoding of the same images by several encoders, the model with words first."""

    def __init__(self, encodings: Sequence[ImageEncoding], looks: Sequence[ImageEncoder]) -> None:
        self._encodings, self._looks = tuple(encodings), tuple(looks)
        self.images_at_once = max(part.images_at_once for part in encodings)

    @property
    def visual_dim(self) -> int:
        """Length of the features that compare images with each other."""
        return sum(visual_dim(encoder) for encoder in self._looks)

    @property
    def n_left(self) -> int:
        """Number of files that are still to be opened."""
        return max(part.n_left for part in self._encodings)

    @property
    def n_encoded(self) -> int:
        """Number of images that went through a model."""
        return max(part.n_encoded for part in self._encodings)

    def try_some(self, seconds: float) -> Trial:
        """Encode some images with every encoder; the time of a file is that of all of them."""
        unfinished = [part for part in self._encodings if part.n_left]
        trials = [part.try_some(seconds / len(unfinished)) for part in unfinished]
        shares, paces, sizes = zip(*trials, strict=True)
        return Trial(min(shares), sum(paces), max(sizes))

    def finish(self, may_be_none: bool = False) -> EncodedImages:
        """Encode the rest, and return the images that all encoders have features of."""
        found = [part.finish(may_be_none) for part in self._encodings]
        common = set(found[0].paths).intersection(*(images.paths for images in found[1:]))
        first = found[0]
        kept = [i for i, path in enumerate(first.paths) if path in common]
        return replace(
            first,
            paths=tuple(first.paths[i] for i in kept),
            hashes=tuple((first.hashes or ())[i] for i in kept),
            skipped=tuple(dict.fromkeys(file for images in found for file in images.skipped)),
            n_encoded=self.n_encoded,
            looks=self._looks,
        )
