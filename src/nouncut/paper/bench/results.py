"""Results on disk: one file per data set, model, method and seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nouncut import __version__
from nouncut.paper.bench.files import slug, write_whole_json
from nouncut.paper.scores import ClusteringScores


@dataclass(frozen=True)
class Result:
    """What a method did once."""

    nmi: float
    acc: float
    ari: float
    seconds: float

    @property
    def scores(self) -> ClusteringScores:
        """The three scores."""
        return ClusteringScores(self.nmi, self.acc, self.ari)


class ResultFolder:
    """Results that have been computed.

    A result is found by everything that decides it: the images, the model, the nouns, the method,
    the seed and nouncut's version.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, facts: Mapping[str, Any]) -> Result | None:
        """Return a result that is there."""
        content = self.read_any(facts)
        return None if content is None else Result(**content)

    def write(self, facts: Mapping[str, Any], result: Result) -> None:
        """Keep a result."""
        self.write_any(facts, asdict(result))

    def read_any(self, facts: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return any numbers that are there."""
        path = self._path(facts)
        if not path.exists():
            return None
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))["result"]
        return content

    def write_any(self, facts: Mapping[str, Any], numbers: Mapping[str, Any]) -> None:
        """Keep any numbers."""
        content = {"result": dict(numbers), "nouncut": __version__, **facts}
        write_whole_json(self._path(facts), content)

    def _path(self, facts: Mapping[str, Any]) -> Path:
        text = json.dumps({"nouncut": __version__, **facts}, sort_keys=True)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = f"{slug(facts['method'])}-{facts['seed']}-{digest}.json"
        return self._folder / slug(facts["dataset"]) / slug(facts["model_name"]) / name
