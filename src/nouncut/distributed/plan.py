"""The plan of a distributed run: what is decided before the first task, and never changes."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields
from typing import Any

from nouncut import __version__
from nouncut.distributed.storage import Storage
from nouncut.errors import InputError, OutputError

PLAN = "plan.json"


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

    The cluster may have changed since, but not the images, the settings or nouncut.
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
    return earlier


def _read(storage: Storage) -> Plan:
    found: dict[str, Any] = storage.read_json(PLAN)
    try:
        return Plan(**{one.name: found[one.name] for one in fields(Plan)})
    except (KeyError, TypeError) as error:
        raise InputError(f"{storage.url}/{PLAN} is damaged. Remove the folder.") from error
