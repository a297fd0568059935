"""Threads for compiled code that releases the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: None for one (or what a joblib context says), -1 for every core that
        this process may use, -2 for all but one.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from nouncut.compute.threads import count_threads
    >>> count_threads(2)
    2
    """
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
    """Call `function` on every task, `n_threads` at a time; the first error is raised.

    Parameters
    ----------
    function : callable
        Writes to no memory that another task writes to.
    tasks : iterable
        The arguments, one per call.
    n_threads : int
        How many calls run at once.

    Returns
    -------
    list
        The results, in the order of the tasks.
    """
    if n_threads == 1:
        return [function(task) for task in tasks]
    return list(_pool(n_threads).map(function, tasks))


def blas_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Limit the threads of BLAS.

    Parameters
    ----------
    n_threads : int
        The limit; with one, products do not depend on how many there could be.

    Returns
    -------
    context manager
        In force for the whole process while it is open.
    """
    return _libraries().limit(limits=n_threads, user_api="blas")  # type: ignore[no-any-return]


def all_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Limit the threads of BLAS and OpenMP."""
    return _libraries().limit(limits=n_threads)  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    # Looking for them takes longer than many a product.
    return ThreadpoolController()
