"""Why images are in their clusters, for the page's dialog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.report import shown_images
from nouncut.runs.explain import RunEvidence
from nouncut.runs.run import Run

# As for the second choices that the page shows.
_LEAST_SECOND_CHOICE = 0.01


def reasons_data(run: Run, shown: Iterable[int]) -> dict[str, Any]:
    """Return similar images and words of all images, or of those `shown` if there are many.

    Per row: similar images in its cluster, words for it, and both for the second choice.
    """
    n_images = len(run.assignments)
    if not n_images:
        return {"words": [], "images": {}}
    everyone = n_images <= shown_images.MAX_INLINE
    rows = np.arange(n_images) if everyone else np.array(sorted(shown), np.intp)
    return reasons_of(RunEvidence(run), rows)


def reasons_of(evidence: RunEvidence, rows: NDArray[np.intp]) -> dict[str, Any]:
    """Return similar images and words of some images."""
    run = evidence.run
    chosen = run.assignments.take(rows)
    second = chosen["second_cluster"].fill_null(-1).to_numpy().astype(np.intp)
    sure = chosen["second_confidence"].fill_null(0).to_numpy()
    second = np.where(sure >= _LEAST_SECOND_CHOICE, second, -1)
    words: list[tuple[list[int], list[int]]] = [([], []) for _ in rows]
    if evidence.has_words:
        words = [(own, other) for _, own, other in evidence.word_rows(rows, second)]
    used: dict[int, int] = {}
    images = {}
    near = evidence.nearest(rows, evidence.labels[rows])
    near_second = evidence.nearest(rows, second)
    for row, own, other, (for_own, for_other) in zip(rows, near, near_second, words, strict=True):
        parts = (
            [image for image, _ in own],
            [used.setdefault(word, len(used)) for word in for_own],
            [image for image, _ in other],
            [used.setdefault(word, len(used)) for word in for_other],
        )
        if any(parts):
            images[str(row)] = parts
    return {"words": [evidence.words[word] for word in used], "images": images}
