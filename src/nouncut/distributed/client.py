"""A Dask cluster: one that is running, or one on this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import dask
from distributed import Client, LocalCluster

from nouncut.compute.memory import available_memory
from nouncut.errors import ClusterError, ParameterError, describe_error

_LOCAL = "local"
# Of the free memory, for all workers of a local cluster together.
_SHARE_OF_MEMORY = 0.8
_CONNECT_SECONDS = 30
_LOCAL_SETTINGS = {
    # A busy machine takes longer than Dask's 15 seconds to replace a worker, which would be given
    # up.
    "distributed.deploy.lost-worker-timeout": "10 minutes",
    # Dask's workers return every block of memory to the system, so that fresh pages make products
    # of matrices take twice as long. Blocks of the search are kept; larger ones are returned, as
    # Dask would take what is kept for data, and move all data to the disk.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**24,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**22,
}


@contextmanager
def connect(
    scheduler: str,
    memory_limit: int | None = None,
    announce: Callable[[str], object] | None = None,
) -> Iterator[Client]:
    """Connect to a scheduler such as ``tcp://host:8786``, or start ``local:4`` worker processes.

    Parameters
    ----------
    scheduler : str
        Address of a scheduler, or "local:" and a number of processes on this machine.
    memory_limit : int, optional
        Bytes of every local worker; by default an even share of what is free.
    announce : callable, optional
        Called with the address of Dask's dashboard.

    Yields
    ------
    distributed.Client
        A client, which is closed at the end.
    """
    kind, _, number = scheduler.partition(":")
    if kind == _LOCAL:
        with (
            dask.config.set(_LOCAL_SETTINGS),
            _local_cluster(number, memory_limit) as cluster,
            Client(cluster) as client,
        ):
            if announce is not None:
                announce(_dashboard_here(client))
            yield client
        return
    try:
        client = Client(scheduler, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {scheduler} ({describe_error(error)}). Check the "
            "address, such as tcp://HOST:8786, or pass local:4 for four processes here."
        ) from error
    with _quiet_client(), client:
        if announce is not None:
            announce(_dashboard(client))
        yield client


@contextmanager
def _quiet_client() -> Iterator[None]:
    """Keep Dask's tracebacks of lost connections from users: they get a `ClusterError`."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _dashboard(client: Client) -> str:
    return f"Dask's dashboard: {client.dashboard_link}"


def _dashboard_here(client: Client) -> str:
    """Return the address of the dashboard; without Bokeh its pages are empty."""
    if find_spec("bokeh") is None:
        return "Dask's dashboard needs Bokeh: pip install bokeh"
    return _dashboard(client)


def worker_memory(client: Client) -> int:
    """Return the bytes that a task can use on the smallest worker of a cluster."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
    free = available_memory() or 2**33
    return int(min((one["memory_limit"] or free) / one["nthreads"] for one in workers))


def _local_cluster(number: str, memory_limit: int | None) -> Any:
    n_workers = int(number) if number.isdecimal() else 0
    if n_workers < 1:
        raise ParameterError(
            f"`scheduler` must be an address such as tcp://HOST:8786, or local:4 for four "
            f"processes on this machine; got local:{number}."
        )
    free = available_memory()
    if memory_limit is None and free is not None:
        memory_limit = int(_SHARE_OF_MEMORY * free / n_workers)
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        memory_limit=memory_limit or "auto",
        dashboard_address="127.0.0.1:0",
    )
