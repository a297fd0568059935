from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nouncut.images.hashing import content_hash
from nouncut.runs.run import Run
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
from nouncut.runs.writer import RunContents, RunWriter

_SHARED: list[Run] = []


@pytest.fixture
def shared_run(make_run, tmp_path_factory) -> Run:
    """Return a small run, written once, that no test may change."""
    if not _SHARED:
        _SHARED.append(make_run(tmp_path_factory.mktemp("shared") / "run"))
    return _SHARED[0]


@pytest.fixture
def write_run(tmp_path_factory):
    """Return a writer of runs from images, the cluster of each and the clusters' names."""

    def write(
        images: Sequence[str | Path],
        labels: Sequence[int],
        names: Sequence[str],
        arrays: dict[str, np.ndarray] | None = None,
    ) -> Run:
        hashes = [content_hash(image) if Path(image).is_file() else "0" * 40 for image in images]
        table = images_table(images, hashes=hashes)
        assignments = {
            "path": table["path"].to_pylist(),
            "cluster": labels,
            "name": [names[label] for label in labels],
            "confidence": [0.9] * len(labels),
            "outlier": [False] * len(labels),
        }
        clusters = {
            "cluster": range(len(names)),
            "name": names,
            "size": np.bincount(labels, minlength=len(names)),
            "exemplars": [[]] * len(names),
            "borderline": [[]] * len(names),
        }
        contents = RunContents(
            manifest={"source_kind": "images", "source": ["/"]},
            assignments=_filled(assignments, len(labels), ASSIGNMENTS_SCHEMA),
            clusters=_filled(clusters, len(names), CLUSTERS_SCHEMA),
            images=table,
            arrays=arrays or {},
        )
        with RunWriter(tmp_path_factory.mktemp("written") / "run") as writer:
            return writer.finish(contents)

    return write


def _filled(columns: dict, n_rows: int, schema: pa.Schema) -> pa.Table:
    nothing = [None] * n_rows
    return pa.table({name: columns.get(name, nothing) for name in schema.names}, schema=schema)
