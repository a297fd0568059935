"""The manifest in words: the model, the number of clusters, settings and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nouncut.compute.progress import shown_seconds
from nouncut.report.said import Moment, Number, say
from nouncut.runs.settings import shown_settings
from nouncut.runs.word_trust import describe_trust

# Probabilities that the number of clusters is right to a tenth.
_SURE = 0.6
_UNSURE = 0.3


@dataclass(frozen=True)
class ModelFacts:
    """The model that encoded the images."""

    name: str
    is_embedded: bool
    meaning: str
    trust: str
    reason: str


@dataclass(frozen=True)
class CountFacts:
    """How the number of clusters was found, with the scores of candidates relative to the best."""

    verdict: str
    explanation: str
    confidence: float | None
    candidates: tuple[tuple[int, float], ...]


def describe_model(manifest: Mapping[str, Any]) -> ModelFacts:
    """Describe the model of a run and what to expect from it."""
    model = manifest.get("model") or {}
    name, is_embedded = str(model.get("name") or ""), bool(model.get("embedded"))
    if manifest.get("source_kind") == "features":
        name, meaning = name or say("model.features"), say("model.features.meaning")
    elif is_embedded:
        name, meaning = name or "mini", say("model.mini.meaning", n=1000)
    elif name:
        meaning = say("model.clip.meaning")
    else:
        name, meaning = say("unknown"), say("model.unknown.meaning")
    trust, reason = describe_trust(manifest) or "", str(model.get("reason") or "")
    return ModelFacts(name, is_embedded, meaning, trust, reason)


def describe_count(manifest: Mapping[str, Any]) -> CountFacts:
    """Describe how reliable the number of clusters is."""
    n_clusters = int(manifest["n_clusters"])
    count = manifest.get("cluster_count")
    if not count:
        why = say("count.given.why", n=n_clusters)
        return CountFacts(say("count.given"), why, None, ())
    confidence = float(count.get("confidence") or 0)
    if confidence >= _SURE:
        verdict, why = say("count.sure"), say("count.sure.why")
    elif confidence >= _UNSURE:
        verdict, why = say("count.fair"), say("count.fair.why")
    else:
        verdict, why = say("count.unsure"), say("count.unsure.why")
    pairs = [(int(number), float(score or 0)) for number, score in count.get("candidates") or []]
    best = max((score for _, score in pairs), default=0) or 1.0
    shares = tuple((number, max(0.0, score / best)) for number, score in pairs)
    return CountFacts(verdict, why, confidence, shares)


def describe_settings(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List the settings of a run, the values chosen for open ones, and the machine."""
    machine = manifest.get("machine") or {}
    rest = {
        "Model's fingerprint": (manifest.get("model") or {}).get("fingerprint"),
        "nouncut": manifest.get("nouncut"),
        "Python": machine.get("python"),
        "Machine": machine.get("platform"),
        "Cores": machine.get("cores"),
    }
    known = [(label, str(value)) for label, value in rest.items() if value]
    return shown_settings(manifest) + known


def describe_times(manifest: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """List the stages of a run with their times, and those relative to the longest."""
    seconds = {
        stage: float(time) for stage, time in (manifest.get("seconds") or {}).items() if time
    }
    longest = max(seconds.values(), default=0) or 1.0
    return [(stage, _time(time), time / longest) for stage, time in seconds.items()]


def shown_date(text: str | None) -> str:
    """Return an ISO date as people write it; other text unchanged."""
    try:
        return Moment(datetime.fromisoformat(text or ""))
    except ValueError:
        return text or ""


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return say("seconds.under", number=Number(0.1, 1))
    return say("seconds", number=Number(seconds, 1)) if seconds < 10 else shown_seconds(seconds)
