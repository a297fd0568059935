"""What the command says about a run: before its long part, and at its end."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from rich.table import Table

from nouncut.cli.console import notes, print_json, results, shown_bytes
from nouncut.cli.exit_codes import for_command_line
from nouncut.compute.memory import available_memory, used_memory
from nouncut.compute.progress import QUICK_SECONDS, shown_seconds
from nouncut.errors import printable_path
from nouncut.runs.word_trust import describe_trust

if TYPE_CHECKING:
    from nouncut.cli.console import StageBars
    from nouncut.runs.estimate import Estimate
    from nouncut.runs.run import Run

_SHOWN_CLUSTERS = 40
_SHOWN_SKIPPED = 5
# Parts of the reasons why files are skipped, and how a count of them is called.
_SKIPPED = (
    ("the image is broken", "broken"),
    ("is empty", "empty"),
    ("RAW", "RAW"),
    ("not an image", "not images"),
    ("the same file as", "found twice"),
    ("hidden", "hidden"),
    ("pixels are more", "too large"),
    ("does not exist", "missing"),
    ("cannot be read", "unreadable"),
)
# From this share of broken files on, they are mentioned before the run.
_MANY_BROKEN = 0.05
_GUESSES = (
    "is a guess: the model does not know what the group shows.",
    "are guesses: the model does not know what these groups show.",
)


class Announcement:
    """Announces a run that takes a while, and remembers what it has said."""

    def __init__(self, bars: StageBars) -> None:
        self._bars = bars
        # Whether there is a new run at all.
        self.is_new = False
        self.was_printed = False

    def __call__(self, estimate: Estimate) -> None:
        """Print an estimate, unless it takes longer to read than to wait."""
        self.is_new = True
        # No image, or a single one, ends in an error.
        is_worth_it = estimate.seconds >= QUICK_SECONDS or bool(
            _describe_shortage(estimate.n_bytes)
        )
        self.was_printed = is_worth_it and estimate.n_images > 1
        if self.was_printed:
            self._bars.note(describe_estimate(estimate))

    def end_on_cluster(self, run: Run, began: datetime) -> None:
        """Tell whether a cluster, which makes no estimate, has made a new run."""
        self.is_new = datetime.fromisoformat(run.manifest["finished"]) >= began
        self.was_printed = True


def describe_estimate(estimate: Estimate) -> str:
    """Return what there is to do, and the time and memory that it takes."""
    if estimate.source_kind == "features":
        todo = [f"{_count(estimate.n_files, 'row')} of features."]
    else:
        new, copies = estimate.images_to_encode, estimate.n_copies
        todo = [_describe_todo("image file", estimate.n_files, new, copies)]
    if estimate.n_words:
        todo.append(_describe_todo("noun", estimate.n_words, estimate.texts_to_encode))
    if estimate.n_files - estimate.n_images > _MANY_BROKEN * estimate.n_files:
        todo.append(f"About {estimate.n_images:,} images can be opened.")
    cost = f"{shown_seconds(estimate.seconds)} and {shown_bytes(estimate.n_bytes)} of memory"
    return f"{' '.join(todo)} About {cost}{_describe_shortage(estimate.n_bytes)}."


def show_run(
    run: Run, announcement: Announcement, *, quiet: bool = False, as_json: bool = False
) -> None:
    """Print the groups of a run."""
    if as_json:
        print_json(summary(run))
    elif not quiet:
        _show_notes(run, announcement)
        _show_table(run)


def summary(run: Run) -> dict[str, Any]:
    """Return the groups of a run for --json."""
    fields = (
        "n_images",
        "n_copies",
        "n_outliers",
        "n_skipped",
        "n_encoded",
        "model",
        "tau",
        "noun_trust",
        "cluster_count",
        "warnings",
        "estimate",
        "seconds",
        "changes",
    )
    columns = [
        "cluster",
        "name",
        "name_confidence",
        "guess",
        "more_words",
        "gloss",
        "size",
        "cohesion",
    ]
    return {
        "directory": str(run.directory.absolute()),
        "report": str(run.report.absolute()),
        **{field: run.manifest.get(field) for field in fields},
        "n_clusters": len(run.clusters),
        "n_set_aside": run.n_set_aside,
        "clusters": run.clusters.select(columns).to_pylist(),
        "skipped": [{"path": str(file.path), "reason": file.reason} for file in run.skipped],
    }


def describe_files(n_images: int, reasons: list[str]) -> str:
    """Return how many files were found, used and skipped, and why."""
    counts = Counter(_short_reason(reason) for reason in reasons)
    why = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
    found = _count(n_images + len(reasons), "file")
    return f"{found} found: {_count(n_images, 'image')}, {len(reasons):,} skipped ({why})."


def _show_notes(run: Run, announcement: Announcement) -> None:
    console, manifest = notes(), run.manifest
    if not announcement.is_new:
        console.print(f"Nothing is new: this is the run of {_shown_date(manifest['finished'])}.")
    elif run.has_images and not announcement.was_printed and not manifest["n_encoded"]:
        console.print(f"{_count(manifest['n_images'], 'image')}: all known from before.")
    for sentence in _news(manifest) if announcement.is_new else ():
        console.print(for_command_line(sentence))
    if manifest["model"]["name"] != manifest["settings"]["model"]:
        console.print(manifest["model"]["reason"])
    if trust := describe_trust(manifest):
        console.print(trust)
    for warning in manifest["warnings"]:
        console.print(f"Note: {for_command_line(warning)}")
    for file in run.skipped[:_SHOWN_SKIPPED]:
        console.print(f"Skipped {printable_path(file.path)}: {file.reason}")
    if len(run.skipped) > _SHOWN_SKIPPED:
        console.print(f"... and {len(run.skipped) - _SHOWN_SKIPPED:,} more: see the report.")


def _news(manifest: dict[str, Any]) -> list[str]:
    """Say what is kept from the run before, and what changed."""
    # Not at the top: the help needs no tables.
    from nouncut.runs.changes import describe_changes, read_changes
    from nouncut.runs.renames import describe_kept

    kept, changes = describe_kept(manifest), read_changes(manifest)
    return [*([kept] if kept else []), *(describe_changes(changes) if changes else ())]


def _show_table(run: Run) -> None:
    console = results()
    table = Table(box=None, pad_edge=False)
    for heading in ("", "group", "sure", "images", "cohesion", "also"):
        justify: Literal["left", "right"] = "left" if heading in ("group", "also") else "right"
        # On a narrow terminal, only the further words are folded.
        table.add_column(heading, justify=justify, no_wrap=heading != "also")
    for row in run.clusters.slice(0, _SHOWN_CLUSTERS).to_pylist():
        also = ", ".join(row["more_words"])
        sure = _shown_confidence(row["name_confidence"], row["guess"])
        held = "" if row["cohesion"] is None else f"{row['cohesion']:.2f}"
        cells = (str(row["cluster"]), row["name"], sure, f"{row['size']:,}", held, also)
        table.add_row(*(printable_path(cell) for cell in cells))
    console.print(table, soft_wrap=False)
    if run.clusters.num_rows > _SHOWN_CLUSTERS:
        console.print(f"... and {run.clusters.num_rows - _SHOWN_CLUSTERS:,} more groups")
    console.print()
    if skipped := run.skipped:
        reasons = [file.reason for file in skipped]
        console.print(describe_files(run.manifest["n_images"], reasons))
    if n_guesses := sum(run.clusters["guess"].to_pylist()):
        console.print(f"{_count(n_guesses, 'name')} marked ? {_GUESSES[n_guesses > 1]}")
    console.print(_describe_groups(run))
    console.print(f"Report: {printable_path(run.report)}")
    console.print(f"Search and mend: nouncut explore {shlex.quote(printable_path(run.directory))}")


def _shown_confidence(confidence: float | None, is_guess: bool) -> str:
    """Return the confidence of a name, "?" for a guess, and nothing for a number."""
    return "?" if is_guess else f"{confidence:.2f}" if confidence else ""


def _describe_groups(run: Run) -> str:
    manifest = run.manifest
    n_outliers, n_copies = manifest["n_outliers"], manifest.get("n_copies", 0)
    images, groups = _count(manifest["n_images"], "image"), _count(len(run.clusters), "group")
    about = f"{images} in {groups}"
    if n_set_aside := run.n_set_aside:
        about += f"; {n_set_aside:,} set aside"
    if n_outliers:
        about += f"; {n_outliers:,} fit{'s' * (n_outliers == 1)} nowhere well"
    if n_copies:
        about += f"; {n_copies:,} {'are copies of others' if n_copies > 1 else 'is a copy'}"
    count = manifest["cluster_count"]
    if count and not count["confidence"]:
        about += ". There are too few images to find a number of groups; choose one with -k"
    elif count:
        others = [str(number) for number, _ in count["candidates"][1:4]]
        sure = f"confidence {count['confidence']:.2f}"
        also = f"; next best: {', '.join(others)}" if others else ""
        about += f". The number of groups was found ({sure}{also}); choose another with -k"
    return f"{about}."


def _describe_todo(thing: str, n_all: int, n_new: int, n_copies: int = 0) -> str:
    if n_new == n_all:
        return f"{_count(n_all, thing)} to encode."
    if not n_new:
        return f"{_count(n_all, thing)}: all known from before."
    parts = {
        "to encode": n_new,
        "known from before": n_all - n_new - n_copies,
        "copies" if n_copies > 1 else "copy": n_copies,
    }
    shown = ", ".join(f"{number:,} {words}" for words, number in parts.items() if number)
    return f"{_count(n_all, thing)}: {shown}."


def _describe_shortage(n_bytes: int) -> str:
    """Return how much memory there is, if that is not enough."""
    free = available_memory()
    total = None if free is None else free + (used_memory() or 0)
    return "" if total is None or n_bytes < total else f", but only {shown_bytes(total)} are free"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"


def _short_reason(reason: str) -> str:
    return next((short for part, short in _SKIPPED if part in reason), "for another reason")


def _shown_date(text: str) -> str:
    date = datetime.fromisoformat(text).astimezone()
    return f"{date.day} {date:%B %Y, %H:%M}"
