"""Threads for compiled code that releases the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


Task = TypeVar("Task")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads for an `n_jobs` as in scikit-learn."""
    # Slow to import, like threadpoolctl, and a run with nothing new needs no threads.
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="nouncut")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pools but none of their threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def run_tasks(
    function: Callable[[Task], Result], tasks: Iterable[Task], n_threads: int
) -> list[Result]:
    """Return ``function(task)`` for every task, `n_threads` at a time; raise the first error."""
    if n_threads == 1:
        return [function(task) for task in tasks]
    return list(_pool(n_threads).map(function, tasks))


def blas_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Limit the threads of BLAS within a ``with`` block."""
    return _libraries().limit(limits=n_threads, user_api="blas")  # type: ignore[no-any-return]


def all_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Limit the threads of BLAS and OpenMP within a ``with`` block."""
    return _libraries().limit(limits=n_threads)  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    # Finding the loaded libraries takes milliseconds.
    return ThreadpoolController()
