"""A dataset directory that FiftyOne imports.

The format is ``fiftyone.types.FiftyOneDataset``: of those that FiftyOne reads, it is the only one
that holds fields of any type, vectors and the results of its "brain", of which the points of the
map are one. It is JSON, so neither FiftyOne nor a database is needed to write it.
"""

from __future__ import annotations

import json
import os
import shlex
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.files import explained_writing
from nouncut.errors import printable_path
from nouncut.exports.destination import check_export_file, export_file, make_folders
from nouncut.exports.result import ExportResult
from nouncut.exports.tables import plain_rows

if TYPE_CHECKING:
    from nouncut.exports.part import Part

METADATA, SAMPLES, MAP = "metadata.json", "samples.json", "brain/nouncut_map.json"

_MAP_KEY = "nouncut_map"
# FiftyOne converts data of older versions; this one already has all that is used here.
_VERSION = "1.4.0"
_FIELDS = "fiftyone.core.fields."
_ZLIB_LEVEL = 1


def export_fiftyone(
    part: Part, destination: Path, *, overwrite: bool = False, preview: bool = False
) -> ExportResult:
    """Write a data set that names the images, which are not copied."""
    problems: list[str] = []
    usable = _usable(part, problems)
    points = part.run.map()
    names = (METADATA, SAMPLES) if points is None else (METADATA, SAMPLES, MAP)
    files = [destination / name for name in names]
    for file in files:
        check_export_file(file, overwrite=overwrite)
    if not preview:
        with explained_writing("the data set", destination, "choose another `output`"):
            destination.mkdir(parents=True, exist_ok=True)
            make_folders(files[-1].parent, destination)
        with ExitStack() as stack:
            metadata, samples, *brain = (
                stack.enter_context(export_file(file, overwrite=overwrite)) for file in files
            )
            metadata.write(_json(_metadata(part, points is not None)))
            samples.write(b'{"samples": [')
            for number, sample in enumerate(_samples(part, usable)):
                samples.write(b"%b\n%b" % (b"," if number else b"", _json(sample)))
            samples.write(b"\n]}\n")
            for opened in brain:
                opened.write(_json(_map_results(part, usable, points)))
    folder = shlex.quote(printable_path(destination.absolute()))
    hint = f"fiftyone app view --dataset-dir {folder} --type fiftyone.types.FiftyOneDataset"
    return ExportResult(destination, len(usable), 0, problems, hint, files, is_preview=preview)


def _usable(part: Part, problems: list[str]) -> NDArray[np.intp]:
    """Return the places in the part of images whose paths are text."""
    usable = []
    for place, path in enumerate(part.paths()):
        if _is_text(os.fspath(path)):
            usable.append(place)
        else:
            problems.append(
                f"{printable_path(path)}: left out, since FiftyOne accepts only names that are "
                "text; rename the file"
            )
    return np.array(usable, dtype=np.intp)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _samples(part: Part, usable: NDArray[np.intp]) -> Iterator[dict[str, Any]]:
    run, paths = part.run, part.paths()
    groups = run.tree.paths()
    vectors = run.array("features") if run.has_array("features") else None
    rows = plain_rows(part.assignments.take(usable))
    for place, row in zip(usable.tolist(), rows, strict=True):
        number, cluster = int(part.rows[place]), row["cluster"]
        sample = {
            "_id": {"$oid": _object_id(part, number)},
            "filepath": os.fspath(paths[place].absolute()),
            "tags": [],
            "_media_type": "image",
            "_rand": int(_object_id(part, number)[:8], 16) / 2**32,
            "nouncut": _classification(part, number, "first", row["name"], row["confidence"]),
            "nouncut_second": _classification(
                part, number, "second", row["second_name"], row["second_confidence"]
            ),
            "nouncut_cluster": cluster,
            "nouncut_tree": None if cluster is None else list(groups[cluster]),
            "nouncut_outlier": row["outlier"],
        }
        if vectors is not None:
            packed = _packed(np.asarray(vectors[number], dtype=np.float32))
            sample["nouncut_embedding"] = {"$binary": {"base64": packed, "subType": "00"}}
        yield sample


def _classification(
    part: Part, number: int, which: str, label: str | None, confidence: float | None
) -> dict[str, Any] | None:
    if label is None:
        return None
    return {
        "_id": {"$oid": _object_id(part, number, which)},
        "_cls": "Classification",
        "tags": [],
        "label": label,
        "confidence": confidence,
    }


def _object_id(part: Part, number: int, which: str = "") -> str:
    """Return an id of 24 hexadecimal digits, the same for the same image of a run."""
    text = f"{part.run.manifest.get('id')} {number} {which}"
    return blake2b(text.encode(), digest_size=12).hexdigest()


def _packed(array: NDArray[Any]) -> str:
    """Return an array as FiftyOne stores it: npy, compressed."""
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    return b64encode(zlib.compress(file.getvalue(), _ZLIB_LEVEL)).decode()


def _map_results(
    part: Part, usable: NDArray[np.intp], points: NDArray[Any] | None
) -> dict[str, Any]:
    assert points is not None
    rows = part.rows[usable]
    ids = np.array([_object_id(part, row) for row in rows.tolist()], dtype="<U24")
    return {
        "cls": "fiftyone.brain.visualization.VisualizationResults",
        "reducer_blob": None,
        "points": _packed(np.asarray(points[rows], dtype=np.float64)),
        "sample_ids": _packed(ids),
        "label_ids": None,
    }


def _metadata(part: Part, has_map: bool) -> dict[str, Any]:
    fields = [
        _field("id", "ObjectIdField", db_field="_id"),
        _field("filepath", "StringField"),
        _field("tags", "ListField", subfield="StringField"),
        _field(
            "metadata", "EmbeddedDocumentField", document="fiftyone.core.metadata.ImageMetadata"
        ),
        _field("created_at", "DateTimeField", read_only=True),
        _field("last_modified_at", "DateTimeField", read_only=True),
        _field("_media_type", "StringField"),
        _field("_rand", "FloatField"),
        _field("_dataset_id", "ObjectIdField"),
        _label_field("nouncut", "name of the group, and how sure it is"),
        _label_field("nouncut_second", "second choice"),
        _field("nouncut_cluster", "IntField", about="number of the group"),
        _field(
            "nouncut_tree",
            "ListField",
            subfield="StringField",
            about="names of the groups above, and of the group",
        ),
        _field("nouncut_outlier", "BooleanField", about="fits no group well"),
    ]
    if part.run.has_array("features"):
        fields.append(_field("nouncut_embedding", "VectorField", about="visual features"))
    return {
        "name": part.run.directory.name,
        "version": _VERSION,
        "media_type": "image",
        "sample_fields": fields,
        "frame_fields": [],
        "default_classes": part.run.names,
        "info": {"made by": "nouncut", "run": part.run.manifest.get("id")},
        "brain_methods": {_MAP_KEY: _map_method(part)} if has_map else {},
    }


def _map_method(part: Part) -> dict[str, Any]:
    return {
        "key": _MAP_KEY,
        "version": _VERSION,
        "timestamp": {"$date": part.run.manifest.get("finished") or "1970-01-01T00:00:00+00:00"},
        "config": {
            "cls": "fiftyone.brain.visualization.ManualVisualizationConfig",
            "type": "visualization",
            "method": "manual",
            "num_dims": 2,
        },
        "view_stages": [],
    }


def _label_field(name: str, about: str) -> dict[str, Any]:
    field = _field(
        name, "EmbeddedDocumentField", document="fiftyone.core.labels.Classification", about=about
    )
    field["fields"] = [
        _field("id", "ObjectIdField", db_field="_id"),
        _field("tags", "ListField", subfield="StringField"),
        _field("label", "StringField"),
        _field("confidence", "FloatField"),
        _field("logits", "VectorField"),
    ]
    return field


def _field(
    name: str,
    kind: str,
    *,
    db_field: str | None = None,
    subfield: str | None = None,
    document: str | None = None,
    about: str | None = None,
    read_only: bool = False,
) -> dict[str, Any]:
    return {
        "name": name,
        "ftype": _FIELDS + kind,
        "embedded_doc_type": document,
        "subfield": subfield and _FIELDS + subfield,
        "fields": [],
        "db_field": db_field or name,
        "description": about,
        "info": None,
        "read_only": read_only,
        "created_at": None,
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
