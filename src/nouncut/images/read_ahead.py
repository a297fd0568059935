"""Opening images in threads, ahead of the code that uses them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Integral
from typing import TypeVar

from PIL import Image

from nouncut.compute.checks import check_positive
from nouncut.compute.files import AnyPath
from nouncut.errors import ImageError
from nouncut.images.open import open_image

Item = TypeVar("Item")
Result = TypeVar("Result")
Loaded = Generator[tuple[int, Result | ImageError], None, None]


def load_ahead(
    paths: Iterable[AnyPath],
    prepare: Callable[[Image.Image], Result],
    *,
    n_threads: int,
    ahead: int,
    min_side: int | None = None,
) -> Loaded[Result]:
    """Open and prepare images in threads; yield positions and results in the order of `paths`.

    At most `ahead` images are open or waiting at any time.
    """
    check_positive({"n_threads": n_threads, "ahead": ahead}, Integral)

    def load(path: AnyPath) -> Result | ImageError:
        try:
            return prepare(open_image(path, min_side=min_side))
        except ImageError as error:
            return error

    # The arguments are checked by the call and not by the first `next`.
    return run_ahead(load, paths, n_threads, ahead)


def run_ahead(
    load: Callable[[Item], Result], items: Iterable[Item], n_threads: int, ahead: int
) -> Generator[tuple[int, Result], None, None]:
    """Call a function in threads; yield positions and results in the order of `items`.

    At most `ahead` items are taken before the result of the first of them is used.
    """
    pending: deque[tuple[int, Future[Result]]] = deque()
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="nouncut-images")
    try:
        for position, item in enumerate(items):
            if len(pending) == ahead:
                yield _next_result(pending)
            pending.append((position, pool.submit(load, item)))
        while pending:
            yield _next_result(pending)
    finally:
        pool.shutdown(cancel_futures=True)


def _next_result(pending: deque[tuple[int, Future[Result]]]) -> tuple[int, Result]:
    position, future = pending.popleft()
    return position, future.result()
