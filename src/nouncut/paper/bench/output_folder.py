"""The output folder of a benchmark: results that are kept, and files that are written whole."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nouncut import __version__
from nouncut.compute.files import atomic_file, explained_writing

_STEM_LENGTH = 60


class ResultFolder:
    """Results on disk: one file per data set, model, method and seed.

    The name of a file depends on all facts that decide the result, and on nouncut's version.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, facts: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the numbers of a result, or None if it is not there."""
        path = self._path(facts)
        if not path.exists():
            return None
        numbers: dict[str, Any] = json.loads(path.read_text("utf-8"))["result"]
        return numbers

    def write(self, facts: Mapping[str, Any], numbers: Mapping[str, Any]) -> None:
        """Keep the numbers of a result."""
        write_json(self._path(facts), {"result": numbers, "nouncut": __version__, **facts})

    def read_or_compute(
        self,
        facts: Mapping[str, Any],
        compute: Callable[[], Mapping[str, Any]],
        again: bool = False,
    ) -> Mapping[str, Any]:
        """Return the numbers of a result; compute and keep them if they are not there."""
        kept = None if again else self.read(facts)
        if kept is not None:
            return kept
        numbers = compute()
        self.write(facts, numbers)
        return numbers

    def _path(self, facts: Mapping[str, Any]) -> Path:
        facts_digest = digest({"nouncut": __version__, **facts})
        name = f"{file_stem(facts['method'])}-{facts['seed']}-{facts_digest}.json"
        return self._folder / file_stem(facts["dataset"]) / file_stem(facts["model_name"]) / name


def digest(value: Any) -> str:
    """Return a hash of anything that JSON can hold."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def write_file(path: Path, content: bytes) -> None:
    """Write a file in one step; missing folders are made."""
    with explained_writing("results", path.parent, "choose another `output`"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            file.write(content)


def write_json(path: Path, value: Any) -> None:
    """Write JSON in one step."""
    write_file(path, (json.dumps(value, indent=2) + "\n").encode())


def file_stem(name: str) -> str:
    """Turn any name into one that every file system accepts."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")
    return plain[-_STEM_LENGTH:].strip("-.") or "unnamed"
