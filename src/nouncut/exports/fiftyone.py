"""A dataset directory that FiftyOne imports.

The format is FiftyOne's ``FiftyOneImageClassificationDataset``. Of the documented formats, it is
the one that holds a confidence and attributes beside the label and needs no database to write.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from nouncut.errors import printable_path
from nouncut.exports.destination import export_file
from nouncut.exports.result import ExportResult, require_image_files
from nouncut.exports.tables import plain_rows

if TYPE_CHECKING:
    from nouncut.runs.run import Run

DATA, LABELS = "data.json", "labels.json"

_TYPE = "fiftyone.types.FiftyOneImageClassificationDataset"


def export_fiftyone(run: Run, destination: Path, *, overwrite: bool = False) -> ExportResult:
    """Write the paths of the images and their labels; the images themselves are not copied."""
    require_image_files(run, "fiftyone")
    problems: list[str] = []
    n_written = 0
    with (
        export_file(destination / DATA, overwrite=overwrite) as data,
        export_file(destination / LABELS, overwrite=overwrite) as labels,
    ):
        data.write(b"{")
        labels.write(b'{"classes": %b,\n"labels": {' % _json(run.names))
        for path, label in _samples(run, problems):
            _write_sample(data, n_written, path)
            _write_sample(labels, n_written, label)
            n_written += 1
        data.write(b"\n}\n")
        labels.write(b"\n}}\n")
    folder = shlex.quote(printable_path(destination.absolute()))
    # FiftyOne 1.22 finds the images only if told; "dynamic" lets the App filter by attributes.
    kwargs = f"--kwargs data_path={DATA} dynamic=True"
    hint = f"fiftyone app view --dataset-dir {folder} --type {_TYPE} {kwargs}"
    return ExportResult(destination, n_written, problems=problems, hint=hint)


def _samples(run: Run, problems: list[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    classes = {number: position for position, number in enumerate(run.names_by_cluster)}
    for path, row in zip(run.paths(), plain_rows(run.assignments), strict=True):
        text = os.fspath(path.absolute())
        if _is_text(text):
            yield text, _label(row, classes)
        else:
            problems.append(
                f"{printable_path(path)}: left out, since FiftyOne accepts only names that are "
                "text; rename the file"
            )


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label(row: dict[str, Any], classes: dict[int, int]) -> dict[str, Any] | None:
    """Return the label of an image; None if it is set aside."""
    if row["cluster"] is None:
        return None
    attributes = {
        "cluster": row["cluster"],
        "second_label": row["second_name"],
        "second_confidence": row["second_confidence"],
        "outlier": row["outlier"],
    }
    return {
        "label": classes[row["cluster"]],
        "confidence": row["confidence"],
        "attributes": {name: value for name, value in attributes.items() if value is not None},
    }


def _write_sample(file: BinaryIO, number: int, value: Any) -> None:
    # FiftyOne sorts the samples by their keys, which are text.
    file.write(b'%b\n"%08d": %b' % (b"," if number else b"", number, _json(value)))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
