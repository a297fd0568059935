"""The plan of a distributed run: what is decided before the first task, and never changes."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from nouncut import __version__
from nouncut.distributed.coarsen import COARSE
from nouncut.distributed.storage import Storage
from nouncut.errors import InputError, OutputError

PLAN = "plan.json"
# What does not depend on the number of partitions: stages and files up to the cells.
_LASTING_STAGES = {"model", "index", "encoding images", "features", "sample", "choices", "cells"}
_LASTING_STAGES |= {"micro-clusters", "sample-micro-clusters"}
_LASTING_FILES = {PLAN, "listing-of.json", "listing.json", "listing", "encoded.json"}
_LASTING_FILES |= {"stages", "receipts", "images", "features", "semantic", "rows", "sample"}
_LASTING_FILES |= {"choices", "cells", COARSE, "weights", "micro", "typical"}


@dataclass(frozen=True)
class Plan:
    """What a resumed run must have in common with the run that it continues."""

    digest: str  # Of settings and sources.
    shards: list[str]
    worker_bytes: int  # Memory that a task may use.
    n_partitions: int | None = None  # None: as many as the memory of a worker asks for.
    coarsen: str = "auto"
    nouncut: str = __version__

    def content(self) -> str:
        """Hash of everything that decides a result: version, settings, files."""
        text = repr((self.nouncut, self.digest, self.shards))
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def settle_plan(storage: Storage, plan: Plan, *, resume: bool) -> Plan:
    """Write the plan of a new run, or return that of the run that is continued.

    The cluster may have changed since, but not the images, the settings or nouncut. With another
    number of partitions, all that depends on it begins again.
    """
    if storage.size(PLAN) is None:
        storage.write_json(PLAN, asdict(plan))
        return plan
    if not resume:
        raise OutputError(
            f"{storage.url} holds an unfinished run. Continue it with `resume=True`, or remove it."
        )
    earlier = _read(storage)
    for name, what in (
        ("digest", "settings or sources"),
        ("shards", "files"),
        ("nouncut", "version"),
    ):
        if getattr(earlier, name) != getattr(plan, name):
            raise OutputError(
                f"{storage.url} holds an unfinished run with other {what}. Repeat the command that "
                "began it, or choose another folder with `output`."
            )
    if plan.n_partitions not in (None, earlier.n_partitions):
        earlier = replace(earlier, n_partitions=plan.n_partitions)
        _forget_partitions(storage)
        storage.write_json(PLAN, asdict(earlier))
    return earlier


def _forget_partitions(storage: Storage) -> None:
    """Remove what was made for another number of partitions, what says that it is done first."""
    for prefix in ("", f"{COARSE}/"):
        for folder in ("stages", "receipts"):
            for name in storage.names(f"{prefix}{folder}"):
                if name.removesuffix(".json") not in _LASTING_STAGES:
                    storage.remove(f"{prefix}{folder}/{name}")
        for name in storage.names(prefix):
            if name not in _LASTING_FILES:
                storage.remove(f"{prefix}{name}")


def _read(storage: Storage) -> Plan:
    found: dict[str, Any] = storage.read_json(PLAN)
    try:
        return Plan(**{one.name: found[one.name] for one in fields(Plan)})
    except (KeyError, TypeError) as error:
        raise InputError(f"{storage.url}/{PLAN} is damaged. Remove the folder.") from error
