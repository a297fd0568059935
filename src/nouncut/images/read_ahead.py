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
    """Open and prepare images in threads, and hand them out in order.

    Parameters
    ----------
    paths : iterable of path
        Image files; taken one by one, never more than `ahead` of the consumer.
    prepare : callable
        Called in the threads with every opened image. An `ImageError` that it raises is handed
        out like that of a broken file; any other exception is raised at the image's turn.
    n_threads : int
        Images that are worked on at once.
    ahead : int
        Images that are worked on or wait for the consumer, at most: the limit on memory.
    min_side, max_pixels
        As in `open_image`.

    Yields
    ------
    position : int
        The image's place in `paths`.
    result
        What `prepare` returned, or the `ImageError` that tells why there is nothing.

    Notes
    -----
    Closing the generator, or leaving the loop over it, drops what has not begun and waits for
    the images at work, `n_threads` at most. No thread is left behind.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from nouncut.images.read_ahead import load_ahead
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     good, bad = Path(folder, "good.png"), Path(folder, "bad.png")
    ...     Image.new("RGB", (4, 3)).save(good)
    ...     _ = bad.write_bytes(b"")
    ...     loaded = load_ahead([good, bad], lambda image: image.size, n_threads=2, ahead=4)
    ...     [(i, getattr(result, "reason", result)) for i, result in loaded]
    [(0, (4, 3)), (1, 'the file is empty')]
    """
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
