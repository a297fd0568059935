"""Stages of a distributed run: coarse, pure tasks that each leave a receipt when they are done.

A task is a function with plain arguments. It reads files and writes files; its receipt, written
last, names them. A stage submits only the tasks that have no receipt, so that running the same
stages again after a failure repeats nothing that was finished.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple
from uuid import uuid4

from dask.base import annotate
from distributed import Client, Future, as_completed
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from nouncut.compute.progress import Progress, silent
from nouncut.distributed.storage import Options, Storage
from nouncut.errors import ClusterError, NouncutError, describe_error

# Attempts after the first one, for tasks that raise an error; Dask itself repeats those of lost
# workers.
_RETRIES = 2
_POLL_SECONDS, _LOOK_SECONDS = 0.1, 10.0
# A batch system may take a while to replace a worker that is gone.
_PATIENCE_SECONDS = 600

Result = dict[str, Any]


class Task(NamedTuple):
    """One task of a stage: ``function(storage, *inputs, **arguments)`` returns a small dict.

    Arguments are of JSON's types. `inputs` are steps of a `Flow`, whose results live in the memory
    of the workers only.
    """

    key: str
    function: Callable[..., Result]
    arguments: dict[str, Any]
    inputs: tuple[Step, ...] = ()


Step = str


class Flow:
    """Steps between files within a stage: a Dask graph whose keys stand for results."""

    def __init__(self) -> None:
        self.graph: dict[Step, tuple[Callable[..., Any], *tuple[Step | list[Step], ...]]] = {}
        self.homes: dict[Step, int] = {}

    def add(
        self,
        function: Callable[..., Any],
        *inputs: Step | list[Step],
        home: int | None = None,
        **plain: Any,
    ) -> Step:
        """Add ``function(*inputs, **plain)``, and return the step that stands for its result.

        Steps with the same `home` run on the same worker, so that nothing large is sent; by default
        a step is at home with its first input.
        """
        step = f"{function.__name__}-{len(self.graph)}"
        self.graph[step] = (partial(function, **plain) if plain else function, *inputs)
        self.settle(step, inputs, home)
        return step

    def settle(
        self, step: Step, inputs: Sequence[Step | list[Step]], home: int | None = None
    ) -> None:
        """Set the home of a step."""
        if home is None and inputs and isinstance(inputs[0], str):
            home = self.homes.get(inputs[0])
        if home is not None:
            self.homes[step] = home

    def renamed(self, suffix: str) -> Flow:
        """Return the same flow with other names; Dask remembers those of earlier attempts."""

        def name(step: Step | list[Step]) -> Any:
            return list(map(name, step)) if isinstance(step, list) else f"{step}-{suffix}"

        other = Flow()
        for step, (function, *inputs) in self.graph.items():
            other.graph[name(step)] = (function, *map(name, inputs))
        other.homes = {name(step): home for step, home in self.homes.items()}
        return other

    def workers(self, addresses: Sequence[str]) -> dict[Step, list[str]]:
        """Return the worker of every step with a home; neighbouring homes share workers."""
        n_homes = 1 + max(self.homes.values(), default=0)
        return {
            step: [addresses[home * len(addresses) // n_homes]] for step, home in self.homes.items()
        }


@dataclass
class StageCount:
    """How many tasks a stage has, and how many of them were finished by an earlier attempt."""

    n_tasks: int
    n_finished: int
    seconds: float = 0.0  # Of all tasks that were run now; steps of a flow are not counted.
    cpu_seconds: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass
class Engine:
    """Runs stages on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.
    storage : Storage
        Where tasks find and leave files.
    progress : callable, optional
        Called with the stage, the number of tasks done and their total.
    """

    client: Client
    storage: Storage
    progress: Progress = silent
    counts: dict[str, StageCount] = field(default_factory=dict)

    def run(
        self,
        stage: str,
        tasks: Sequence[Task],
        shown: str = "",
        flow: Flow | None = None,
    ) -> list[Result]:
        """Run the tasks of a stage that are not finished; return the results of all, in order.

        Users see the progress of stages with a name to be `shown`. `flow` has the steps that are
        inputs of tasks.
        """
        known = self._finished(stage)
        missing = [task for task in tasks if task.key not in known]
        count = self.counts[stage] = StageCount(len(tasks), len(tasks) - len(missing))
        report = partial(self.progress, shown) if shown else _silent
        report(count.n_finished, len(tasks))
        if missing:
            while left := [task for task in missing if task.key not in known]:
                self._submit(stage, left, known, count, report, flow or Flow())
            self.storage.write_json(_joined_receipts(stage), {t.key: known[t.key] for t in tasks})
        return [known[task.key] for task in tasks]

    def run_each(
        self,
        stage: str,
        n: int,
        function: Callable[..., Result],
        plain: Mapping[str, Any],
        shown: str = "",
    ) -> list[Result]:
        """Run a function with the same arguments once for every partition."""
        tasks = [Task(f"{i:05d}", function, {"partition": i, **plain}) for i in range(n)]
        return self.run(stage, tasks, shown)

    def once(self, stage: str, compute: Callable[[], Result]) -> Result:
        """Return what the client has computed, now or in an earlier attempt."""
        known = self._finished(stage)
        self.counts[stage] = StageCount(1, len(known))
        if not known:
            known = {stage: compute()}
            self.storage.write_json(_joined_receipts(stage), known)
        found: Result = known[stage]
        return found

    def forget(self, stage: str, is_failed: Callable[[Result], bool]) -> None:
        """Forget finished tasks whose results say that another attempt may go better."""
        failed = [key for key, result in self._finished(stage).items() if is_failed(result)]
        if failed:
            self.storage.remove(_joined_receipts(stage))
            for key in failed:
                self.storage.remove(f"receipts/{stage}/{key}.json")

    @property
    def n_threads(self) -> int:
        """The number of steps that the workers can run at once."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, sum(int(worker["nthreads"]) for worker in workers))

    @cached_property
    def _begun(self) -> set[str]:
        """Stages of which something was finished by an earlier attempt, or now."""
        folders = ("stages", "receipts")
        return {n.removesuffix(".json") for one in folders for n in self.storage.names(one)}

    def _finished(self, stage: str) -> dict[str, Result]:
        """Return the results of finished tasks; those whose files are not whole do not count."""
        if stage not in self._begun:
            self._begun.add(stage)
            return {}
        if self.storage.size(_joined_receipts(stage)) is not None:
            found: dict[str, Result] = self.storage.read_json(_joined_receipts(stage))
            return found
        results = {}
        for name in self.storage.sizes(f"receipts/{stage}"):
            if receipt := _whole_receipt(self.storage, f"receipts/{stage}/{name}"):
                results[receipt["key"]] = receipt["result"]
        return results

    def _submit(
        self,
        stage: str,
        tasks: Sequence[Task],
        known: dict[str, Result],
        count: StageCount,
        report: Callable[[int, int], None],
        flow: Flow,
    ) -> None:
        """Run tasks until all are done, or until Dask runs no more of them."""
        url, options = self.storage.url, self.storage.options
        own, keys, attempt = Flow(), {}, uuid4().hex[:12]
        own.graph, own.homes = dict(flow.graph), dict(flow.homes)
        for task in tasks:
            step = f"{task.function.__name__}-{stage}-{task.key}"
            run = partial(run_task, task.function, url, options, stage, task.key, task.arguments)
            own.graph[step], keys[f"{step}-{attempt}"] = (run, *task.inputs), task.key
            own.settle(step, task.inputs)
        own = own.renamed(attempt)
        futures: list[Future[Any]] = []
        try:
            with self._at_home(own):
                futures = self.client.get(own.graph, list(keys), sync=False, retries=_RETRIES)
            for future in self._completed(futures, stage, own.graph.keys()):
                key = keys[str(future.key)]
                receipt = _receipt_of(future, stage, key)
                known[key] = receipt["result"]
                count.seconds += receipt["seconds"]
                count.cpu_seconds += receipt["cpu_seconds"]
                count.bytes_read += receipt["read"]
                count.bytes_written += sum(receipt["files"].values())
                report(len(known), count.n_tasks)
            self.client.cancel([future for future in futures if not future.done()])
        except (CommClosedError, OSError, TimeoutError) as error:
            raise _lost_scheduler(stage, error) from error
        except BaseException:
            if futures and self.client.status == "running":
                self.client.cancel(futures)
            raise

    def _at_home(self, flow: Flow) -> AbstractContextManager[object]:
        """Ask Dask to run steps on the workers of their homes, unless these are lost."""
        addresses = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        if not flow.homes or not addresses:
            return nullcontext()
        workers = partial(_workers_of, flow.workers(addresses))
        annotated: AbstractContextManager[object] = annotate(
            workers=workers, allow_other_workers=True
        )
        return annotated

    def _completed(
        self, futures: list[Future[Any]], stage: str, steps: Collection[Step]
    ) -> Iterator[Future[Any]]:
        """Yield futures as they complete; raise a `ClusterError` if no worker is left for long.

        End early if no worker has any of the steps: Dask never runs steps with a home that were
        ready while there was no worker, unless one comes back at the same address.
        """
        completed, looked = as_completed(futures), time.monotonic()
        seen, was_idle = looked, False
        while completed.count():
            with completed.thread_condition:
                if not completed.has_ready():
                    completed.thread_condition.wait(_POLL_SECONDS)
            if completed.has_ready():
                yield next(completed)
                was_idle = False
                continue
            if time.monotonic() - looked < _LOOK_SECONDS:
                continue
            looked = time.monotonic()
            if self.client.scheduler_info(n_workers=1)["workers"]:
                seen = looked
                is_idle = not any(key in steps for key in chain(*self.client.processing().values()))
                if is_idle and was_idle:
                    return
                was_idle = is_idle
            elif looked - seen > _PATIENCE_SECONDS:
                raise ClusterError(
                    f"No worker has been there for {_PATIENCE_SECONDS} seconds in the stage "
                    f"{stage!r}. What was finished is kept: start workers, and continue with "
                    "`resume=True`."
                )


def _workers_of(workers: dict[Step, list[str]], step: Step) -> list[str]:
    return workers.get(step, [])


def run_task(
    function: Callable[..., Result],
    url: str,
    options: Options,
    stage: str,
    key: str,
    arguments: dict[str, Any],
    *inputs: Any,
) -> dict[str, Any]:
    """Run a task on a worker, and write its receipt when its files are complete."""
    storage, start, used = Storage(url, options), time.perf_counter(), time.thread_time()
    name = f"receipts/{stage}/{key}.json"
    # Dask runs finished tasks again if their results were lost with a worker.
    if storage.size(name) is not None and (known := _whole_receipt(storage, name)):
        return known
    result = function(storage, *inputs, **arguments)
    receipt = {
        "key": key,
        "result": result,
        "files": dict(storage.written),
        "read": storage.n_read,
        "seconds": round(time.perf_counter() - start, 4),
        "cpu_seconds": round(time.thread_time() - used, 4),
    }
    storage.write_json(name, receipt)
    return receipt


def _whole_receipt(storage: Storage, name: str) -> dict[str, Any] | None:
    """Read the receipt of a task; None if a file that it names is not whole."""
    receipt: dict[str, Any] = storage.read_json(name)
    is_whole = all(storage.size(file) == size for file, size in receipt["files"].items())
    return receipt if is_whole else None


def _silent(done: int, total: int) -> None:
    """Ignore the progress of small stages."""


def _joined_receipts(stage: str) -> str:
    """Return the file with the results of a complete stage: one request instead of many."""
    return f"stages/{stage}.json"


def _receipt_of(future: Future[Any], stage: str, key: str) -> dict[str, Any]:
    if future.status == "cancelled":
        raise _lost_scheduler(stage, "its tasks were cancelled")
    try:
        receipt: dict[str, Any] = future.result()
    except NouncutError:
        raise
    except KilledWorker as error:
        raise ClusterError(
            f"Task {key} of the stage {stage!r} lost {(error.last_worker and 'several') or 'its'} "
            "workers, probably because they ran out of memory. Give workers more memory, or more "
            "`partitions`, and continue with `resume=True`."
        ) from error
    except (CommClosedError, TimeoutError):
        raise
    except Exception as error:
        raise ClusterError(
            f"Task {key} of the stage {stage!r} failed {_RETRIES + 1} times "
            f"({type(error).__name__}: {describe_error(error)}). What was finished is kept: "
            "continue with `resume=True` when the cause is gone."
        ) from error
    return receipt


def _lost_scheduler(stage: str, error: object) -> ClusterError:
    return ClusterError(
        f"The connection to the Dask scheduler was lost in the stage {stage!r} ({error}). What was "
        "finished is kept: start the cluster again, and continue with `resume=True`."
    )
