"""Search, examples, duplicates and explanations for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nouncut.errors import InputError, NouncutError
from nouncut.report.reasons import reasons_of
from nouncut.runs.search import best_rows
from nouncut.words.spelling import fold_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nouncut.explore.session import Session
    from nouncut.runs.run import Run


def find_text(session: Session, text: str, n: int) -> dict[str, Any]:
    """Return images, files and groups for a text."""
    run = session.view().run
    found: dict[str, Any] = {"rows": [], "nByName": 0, "problem": None}
    if not text.strip():
        return found | {"files": [], "groups": []}
    try:
        named, similar = _suited(*run.searcher.compare(text), n)
    except NouncutError as error:
        found["problem"] = str(error)
    else:
        found["rows"] = [*named.tolist(), *similar.tolist()]
        found["nByName"] = len(named)
    files = session.files().holding(text.strip(), n)
    return found | {"files": files.tolist(), "groups": _groups(run, text)}


def _suited(
    scores: NDArray[np.float32], is_named: NDArray[np.bool_], n: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the images that a group's name promises, and up to `n` that suit the text as well.

    Where names promise some, another image must be as close to the text as half of them.
    """
    named = best_rows(scores, np.flatnonzero(is_named), None)
    others = ~is_named
    if len(named):
        others &= scores >= np.median(scores[named])
    return named, best_rows(scores, np.flatnonzero(others), n)


def find_like(session: Session, row: int, n: int) -> dict[str, Any]:
    """Return the images that look most like one."""
    table = session.view().run.search(like=row, n=n)
    return {"rows": table["row"].to_pylist()}


def find_duplicates(session: Session) -> dict[str, Any]:
    """Return groups of images that are the same or nearly so."""
    table = session.view().run.whole.duplicates()
    groups, rows = table["group"].to_numpy(), table["row"].to_numpy()
    ends = np.flatnonzero(np.diff(groups)) + 1
    return {"groups": [part.tolist() for part in np.split(rows, ends) if len(part)]}


def explain(session: Session, row: int) -> dict[str, Any]:
    """Return similar images and words that say why an image is where it is."""
    view = session.view()
    if not 0 <= row < len(view.run.assignments):
        raise InputError(f"There is no image {row}.")
    return reasons_of(view.evidence, np.array([row]))


def find_suggestions(session: Session) -> dict[str, Any]:
    """Return pairs of groups that may be one."""
    found = session.view().run.suggestions()
    return {
        "suggestions": [
            {
                "groups": one.clusters,
                "score": round(one.score, 4),
                "reason": one.reason,
                "pairs": one.pairs,
            }
            for one in found
        ]
    }


def _groups(run: Run, text: str) -> list[int]:
    """Return the groups whose name or words hold a text, or whose name falls under it."""
    folded = fold_word(text)
    named = set(run.searcher.groups_about(text))
    rows = run.clusters.select(["cluster", "name", "more_words"]).to_pylist()
    return [
        row["cluster"]
        for row in rows
        if row["cluster"] in named
        or any(folded in fold_word(word) for word in (row["name"], *(row["more_words"] or ())))
    ]
