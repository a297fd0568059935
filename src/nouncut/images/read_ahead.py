"""Decoding images ahead of their consumer."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Integral
from typing import TypeVar

from PIL import Image

from nouncut.compute.checks import check_positive
from nouncut.errors import ImageError
from nouncut.images.open import MAX_PIXELS, open_image

Result = TypeVar("Result")
Loaded = Generator[tuple[int, Result | ImageError], None, None]


def load_ahead(
    paths: Iterable[str | os.PathLike[str]],
    prepare: Callable[[Image.Image], Result],
    *,
    n_threads: int,
    ahead: int,
    min_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Loaded[Result]:
    """Open and prepare images in threads, and hand them out in order."""
    check_positive({"n_threads": n_threads, "ahead": ahead}, Integral)

    def load(path: str | os.PathLike[str]) -> Result | ImageError:
        try:
            return prepare(open_image(path, min_side=min_side, max_pixels=max_pixels))
        except ImageError as error:
            return error

    return _in_order(load, paths, n_threads, ahead)


def _in_order(
    load: Callable[[str | os.PathLike[str]], Result | ImageError],
    paths: Iterable[str | os.PathLike[str]],
    n_threads: int,
    ahead: int,
) -> Loaded[Result]:
    waiting: deque[tuple[int, Future[Result | ImageError]]] = deque()
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="nouncut-images")
    try:
        for position, path in enumerate(paths):
            if len(waiting) == ahead:
                yield _next_result(waiting)
            waiting.append((position, pool.submit(load, path)))
        while waiting:
            yield _next_result(waiting)
    finally:
        pool.shutdown(cancel_futures=True)


def _next_result(
    waiting: deque[tuple[int, Future[Result | ImageError]]],
) -> tuple[int, Result | ImageError]:
    position, future = waiting.popleft()
    return position, future.result()
