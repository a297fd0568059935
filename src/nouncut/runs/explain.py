"""Why an image is in its cluster: its nearest images, the words for it, and the runner-up.

Everything comes from the arrays of a run; no model is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from nouncut.compute.files import AnyPath
from nouncut.compute.rows import unit_rows
from nouncut.compute.softmax import softmax_rows
from nouncut.errors import InputError, printable_path
from nouncut.runs.tables import real_paths, unicode_text
from nouncut.words.evidence import spread_tau
from nouncut.words.filters import mean_prompt_features

if TYPE_CHECKING:
    from nouncut.runs.run import Run

N_NEAREST = 4
N_WORDS = 3
# Members of a cluster that an image is compared with, and whose mean says which words suit it.
_COMPARED = 8192
_AVERAGED = 256
_ROWS_AT_ONCE = 512
_MOST_NAMES = 20_000
_SHOWN_COPIES = 3


@dataclass(frozen=True)
class SimilarImage:
    """An image that looks like another, and the cosine of their features."""

    row: int
    path: Path
    similarity: float


@dataclass(frozen=True)
class Reasons:
    """What speaks for one cluster.

    Parameters
    ----------
    cluster : int
        Number of the cluster.
    name : str
        Its name.
    confidence : float or None
        Probability that the image belongs to it.
    nearest : tuple of SimilarImage
        Images of the cluster that look most like the image.
    words : tuple of str
        Words that suit the image, and this cluster better than the other.
    """

    cluster: int
    name: str
    confidence: float | None
    nearest: tuple[SimilarImage, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """Why an image is in its cluster; `print` shows it as text.

    Parameters
    ----------
    row : int
        Row of the image in `Run.assignments`.
    path : Path
        The image.
    words : tuple of str
        Words of the run that suit the image best.
    chosen : Reasons or None
        What speaks for its cluster; None if the image is set aside.
    runner_up : Reasons or None
        What speaks for the second choice; None if there is only one cluster.
    is_outlier : bool
        Whether the image fits no cluster well.
    copies : tuple of Path
        Other files with the same content.
    is_by_hand : bool
        Whether a person moved the image there, or set it aside.
    """

    row: int
    path: Path
    words: tuple[str, ...]
    chosen: Reasons | None
    runner_up: Reasons | None
    is_outlier: bool
    copies: tuple[Path, ...]
    is_by_hand: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON knows it.

        Returns
        -------
        dict
            The fields by name; paths are text.
        """
        found = asdict(self)
        found["path"] = unicode_text(str(self.path))
        found["copies"] = [unicode_text(str(path)) for path in self.copies]
        for part in filter(None, (found["chosen"], found["runner_up"])):
            for image in part["nearest"]:
                image["path"] = unicode_text(str(image["path"]))
        return found

    def __str__(self) -> str:
        return "\n".join(_lines(self))


class RunEvidence:
    """The arrays of a run that say why its images are where they are."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.labels = run.labels

    def nearest(
        self, rows: NDArray[np.intp], clusters: NDArray[np.intp], n: int = N_NEAREST
    ) -> list[list[tuple[int, float]]]:
        """Return for every image the rows of a cluster that look most like it, with cosines.

        Clusters below 0 are none. Large clusters are sampled; their images that share an edge with
        one of the images are always compared.
        """
        found: list[list[tuple[int, float]]] = [[] for _ in rows]
        if not self.run.has_array("features"):
            return found
        for cluster in np.unique(clusters[clusters >= 0]):
            wanted = np.flatnonzero(clusters == cluster)
            for start in range(0, len(wanted), _ROWS_AT_ONCE):
                part = wanted[start : start + _ROWS_AT_ONCE]
                for i, alike in zip(part, self._alike(rows[part], int(cluster), n), strict=True):
                    found[i] = alike
        return found

    @property
    def has_words(self) -> bool:
        """Whether images can be compared with the words of the run."""
        has_arrays = self.run.has_array("semantic") and self.run.has_array("model_noun_features")
        return has_arrays and len(self.words) == self.run.array("model_noun_features").shape[1]

    @cached_property
    def words(self) -> list[str]:
        """The positive nouns of the run."""
        return list((self.run.manifest.get("nouns") or {}).get("words") or [])

    def word_rows(
        self, rows: NDArray[np.intp], others: NDArray[np.intp], n: int = N_WORDS
    ) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """Yield the best words of every image, and those for its cluster and for another.

        A word speaks for a cluster if it is more probable there than in the other, and for the
        image more probable than their geometric mean and than by chance. Where the other cluster
        is below 0 there is none, and chance takes its place.
        """
        chance = np.float32(1 / len(self.words))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part, other = (array[start : start + _ROWS_AT_ONCE] for array in (rows, others))
            suits = self._probabilities(self.run.array("semantic")[part])
            own = self.labels[part][:, None]
            mine = np.where(own < 0, chance, self._suits_clusters[own[:, 0]])
            theirs = np.where(other[:, None] < 0, chance, self._suits_clusters[other])
            gains = suits * (mine - theirs)
            gains[suits < np.maximum(np.sqrt(mine * theirs), chance)] = 0
            for best, gain, is_alone in zip(suits, gains, other < 0, strict=True):
                against = [] if is_alone else _largest(-gain, n)
                yield _largest(best, n), _largest(gain, n), against

    def part_words(self, parts: Sequence[NDArray[np.intp]]) -> list[str | None]:
        """Return the most probable word of each part of a cluster, if it sets the part apart.

        It does if it is more probable there than in all other parts together.
        """
        if not self.has_words:
            return [None] * len(parts)
        suits = self._suits_parts(parts)
        best = suits.argmax(axis=1)
        shares = suits[np.arange(len(parts)), best] / suits[:, best].sum(axis=0)
        return [
            self.words[word] if share > 0.5 else None
            for word, share in zip(best, shares, strict=True)
        ]

    def _alike(
        self, rows: NDArray[np.intp], cluster: int, n: int
    ) -> Iterator[list[tuple[int, float]]]:
        """Yield the images of a cluster that are most like each of some images."""
        candidates = self._candidates(rows, cluster)
        features = self.run.array("features")
        cosines = unit_rows(features[rows]) @ unit_rows(features[candidates]).T
        for row, alike in zip(rows, cosines, strict=True):
            best = np.argsort(-alike, kind="stable")[: n + 1]
            same = self._contents[candidates[best]] == self._contents[row]
            yield [(int(candidates[i]), float(alike[i])) for i in best[~same][:n]]

    def _candidates(self, rows: NDArray[np.intp], cluster: int) -> NDArray[np.intp]:
        first = self._ends[cluster - 1] if cluster else 0
        members = self._members[first : self._ends[cluster]]
        if len(members) <= _COMPARED or not self.run.has_array("graph_indices"):
            return _evenly(members, _COMPARED)
        indptr, indices = self.run.array("graph_indptr"), self.run.array("graph_indices")
        linked = np.concatenate([indices[indptr[row] : indptr[row + 1]] for row in rows])
        return np.union1d(_evenly(members, _COMPARED), np.intersect1d(linked, members))

    @cached_property
    def _members(self) -> NDArray[np.intp]:
        """Images by cluster; of each content in a cluster, the first image stands for all."""
        n_numbers = int(self.labels.max(initial=0)) + 1
        placed = np.flatnonzero(self.labels >= 0)
        # Contents may be negative; only equality counts.
        keys = self._contents[placed] * n_numbers + self.labels[placed]
        distinct = placed[np.unique(keys, return_index=True)[1]]
        # Clusters list their images by content.
        return distinct[np.argsort(self.labels[distinct], kind="stable")]

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        n_numbers = 1 + max(self.run.groups.names, default=-1)
        return np.cumsum(np.bincount(self.labels[self._members], minlength=n_numbers))

    @cached_property
    def _contents(self) -> NDArray[np.int64]:
        """Equal numbers for files with equal content."""
        hashes = self.run.images["hash"].slice(0, len(self.labels)).combine_chunks()
        codes = hashes.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.where(codes < 0, -1 - np.arange(len(codes)), codes).astype(np.int64)

    @cached_property
    def _nouns(self) -> NDArray[np.float32]:
        return mean_prompt_features(list(self.run.array("model_noun_features")))

    @cached_property
    def _tau(self) -> float:
        rows = _evenly(np.arange(len(self.labels)), _AVERAGED)
        return spread_tau(unit_rows(self.run.array("semantic")[rows]), self._nouns)

    @cached_property
    def _suits_clusters(self) -> NDArray[np.float32]:
        """How probable every word is for the mean image of every cluster."""
        return self._suits_parts(np.split(self._members, self._ends[:-1]))

    def _suits_parts(self, parts: Sequence[NDArray[np.intp]]) -> NDArray[np.float32]:
        semantic = self.run.array("semantic")
        means = np.zeros((len(parts), semantic.shape[1]), np.float32)
        for part, rows in enumerate(parts):
            if len(rows):
                means[part] = unit_rows(semantic[_evenly(rows, _AVERAGED)]).mean(axis=0)
        return self._probabilities(means)

    def _probabilities(self, semantic: NDArray[Any]) -> NDArray[np.float32]:
        logits = np.asarray(unit_rows(semantic) @ self._nouns.T, dtype=np.float32)
        softmax_rows(logits, self._tau)
        return logits


def explain_image(run: Run, image: AnyPath | int) -> Explanation:
    """Explain why an image is in its cluster; see `Run.explain`."""
    row = find_row(run, image)
    evidence = RunEvidence(run)
    about = run.assignments.slice(row, 1).to_pylist()[0]
    second = about["second_cluster"]
    rows, other = np.array([row]), np.array([-1 if second is None else second])
    words: tuple[list[int], ...] = ([], [], [])
    if evidence.has_words:
        (words,) = evidence.word_rows(rows, other)
    own, chosen, against = (tuple(evidence.words[i] for i in found) for found in words)

    def reasons(kind: str, words: tuple[str, ...]) -> Reasons:
        cluster = about[f"{kind}cluster"]
        (alike,) = evidence.nearest(rows, np.array([cluster]))
        nearest = tuple(SimilarImage(other, _path(run, other), cosine) for other, cosine in alike)
        name, confidence = about[f"{kind}name"] or "", about[f"{kind}confidence"]
        return Reasons(cluster, name, confidence, nearest, words)

    return Explanation(
        row=row,
        path=_path(run, row),
        words=own,
        chosen=None if about["cluster"] is None else reasons("", chosen),
        runner_up=None if second is None else reasons("second_", against),
        is_outlier=bool(about["outlier"]),
        copies=tuple(_path(run, other) for other in _copies(run, row)),
        is_by_hand=bool(run.groups.by_hand[row]),
    )


def find_row(run: Run, image: AnyPath | int) -> int:
    """Return the row of an image: its number, its path, or the end of its path if no other's."""
    n_images = run.manifest["n_images"]
    if isinstance(image, int | np.integer):
        if not 0 <= image < n_images:
            raise InputError(
                f"There is no image {image}: the run has {n_images:,} images, numbered from 0."
            )
        return int(image)
    text = unicode_text(os.fspath(image))
    exact = (text, unicode_text(os.path.abspath(image)))
    tail = os.sep + os.path.normpath(text)
    same: dict[str, int] = {}
    ends: list[tuple[int, str]] = []
    start = 0
    for part in run.image_parts():
        paths = part["path"]
        found = {one: start + row for one in exact if (row := pc.index(paths, one).as_py()) >= 0}
        same = found | same
        rows = pc.indices_nonzero(pc.ends_with(paths, tail)).to_pylist()
        ends += [(start + row, paths[row].as_py()) for row in rows]
        start += len(paths)
    for one in exact:
        if one in same:
            return same[one]
    if len(ends) == 1:
        return ends[0][0]
    if not ends and text.isascii() and text.isdigit():
        return find_row(run, int(text))
    shown = printable_path(text)
    if ends:
        listed = ", ".join(printable_path(path) for _, path in ends[:3])
        raise InputError(f"{len(ends):,} images are called {shown}: {listed}. Pass the whole path.")
    raise InputError(f"{shown} is not an image of this run.{_near(text, run)}")


def _near(text: str, run: Run) -> str:
    """Name the images whose file names are most like one."""
    if run.n_images > _MOST_NAMES:
        return " Pass a path as in its table of assignments, or a row number."
    paths = run.images["path"].slice(0, run.n_images)
    names = {PurePath(path).name: path for path in paths.to_pylist()}
    close = get_close_matches(PurePath(text).name, names, n=3)
    if not close:
        return " Pass a path as in its table of assignments, or a row number."
    return f" Did you mean {' or '.join(printable_path(names[name]) for name in close)}?"


def _copies(run: Run, row: int) -> list[int]:
    content = run.images["hash"][row].as_py()
    if content is None:
        return []
    same = pc.indices_nonzero(pc.equal(run.images["hash"], content)).to_pylist()
    return [other for other in same if other != row]


def _path(run: Run, row: int) -> Path:
    return real_paths(run.images.slice(row, 1))[0]


def _evenly(rows: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    if len(rows) <= n:
        return rows
    return rows[np.linspace(0, len(rows) - 1, n).astype(np.intp)]


def _largest(values: NDArray[Any], n: int) -> list[int]:
    """Return the places of the largest values above 0, in descending order."""
    best = np.argpartition(-values, min(n, len(values) - 1))[:n]
    return [int(i) for i in best[np.argsort(-values[best], kind="stable")] if values[i] > 0]


def _lines(found: Explanation) -> Iterator[str]:
    yield printable_path(found.path)
    if found.chosen is None:
        yield "is in no group: it was set aside."
    else:
        moved = ": it was moved there by hand" if found.is_by_hand else ""
        yield f"is in {_shown(found.chosen)}{moved}."
        yield from _reason_lines(found.chosen)
    if found.runner_up is not None:
        yield f"The second choice is {_shown(found.runner_up)}."
        yield from _reason_lines(found.runner_up)
    if found.words:
        yield f"Words for the image: {_joined(found.words)}."
    if found.is_outlier:
        yield "It fits no group well."
    if found.copies:
        n_copies = len(found.copies)
        more = f" and {n_copies - _SHOWN_COPIES:,} more" * (n_copies > _SHOWN_COPIES)
        yield f"It is the same as {_joined(map(str, found.copies[:_SHOWN_COPIES]))}{more}."


def _reason_lines(reasons: Reasons) -> Iterator[str]:
    if reasons.nearest:
        yield "  Images there that look most like it:"
        for image in reasons.nearest:
            yield f"    {image.similarity:.2f}  {printable_path(image.path)}"
    if reasons.words:
        yield f"  Words that speak for it: {_joined(reasons.words)}"


def _shown(reasons: Reasons) -> str:
    sure = "" if reasons.confidence is None else f" (confidence {reasons.confidence:.2f})"
    return f'"{printable_path(reasons.name)}"{sure}'


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(map(printable_path, texts))
