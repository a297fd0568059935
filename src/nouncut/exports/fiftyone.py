"""A dataset directory that FiftyOne imports.

The format is FiftyOne's ``FiftyOneImageClassificationDataset``: of those that it documents, the one
that holds a confidence and attributes beside the label, and needs no database to write.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from nouncut.errors import printable_path
from nouncut.exports.result import ExportResult, require_pictures
from nouncut.exports.rows import plain_rows
from nouncut.exports.writing import new_file

if TYPE_CHECKING:
    from nouncut.runs.run import Run

DATA, LABELS = "data.json", "labels.json"

_TYPE = "fiftyone.types.FiftyOneImageClassificationDataset"


def export_fiftyone(run: Run, destination: Path, *, overwrite: bool = False) -> ExportResult:
    """Write a dataset directory for FiftyOne; images are referred to, not copied.

    ``data.json`` tells where the images are, by absolute path. ``labels.json`` gives each its
    cluster's name as the label, the confidence, and as attributes ``cluster``, ``second_label``,
    ``second_confidence`` and ``outlier``.
    """
    require_pictures(run, "fiftyone")
    problems: list[str] = []
    with (
        new_file(destination / DATA, overwrite=overwrite) as data_part,
        new_file(destination / LABELS, overwrite=overwrite) as labels_part,
        data_part.open("x", encoding="utf-8", newline="\n") as data,
        labels_part.open("x", encoding="utf-8", newline="\n") as labels,
    ):
        data.write("{")
        labels.write(f'{{"classes": {_json(run.names)},\n"labels": {{')
        n_written = 0
        for path, label in _samples(run, problems):
            # FiftyOne sorts the samples by their keys.
            key = f"{n_written:08d}"
            _write_item(data, n_written, key, path)
            _write_item(labels, n_written, key, label)
            n_written += 1
        data.write("\n}\n")
        labels.write("\n}}\n")
    folder = shlex.quote(printable_path(destination.absolute()))
    # FiftyOne 1.22 finds the images only if told; "dynamic" lets the App filter by attributes.
    kwargs = f"--kwargs data_path={DATA} dynamic=True"
    hint = f"fiftyone app view --dataset-dir {folder} --type {_TYPE} {kwargs}"
    return ExportResult(destination, n_written, problems=problems, hint=hint)


def _samples(run: Run, problems: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, row in zip(run.paths(), plain_rows(run.assignments), strict=True):
        text = os.fspath(path.absolute())
        if _is_text(text):
            yield text, _label(row)
        else:
            problems.append(
                f"{printable_path(path)}: left out, since FiftyOne takes only names that are text; "
                "rename the file"
            )


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label(row: dict[str, Any]) -> dict[str, Any]:
    attributes = {
        "cluster": row["cluster"],
        "second_label": row["second_name"],
        "second_confidence": row["second_confidence"],
        "outlier": row["outlier"],
    }
    return {
        "label": row["cluster"],
        "confidence": row["confidence"],
        "attributes": {name: value for name, value in attributes.items() if value is not None},
    }


def _write_item(file: TextIO, position: int, key: str, value: Any) -> None:
    file.write(f'{"," if position else ""}\n"{key}": {_json(value)}')


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
