"""What decoders say about damaged files: collected or dropped, never shown on the terminal."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from tempfile import TemporaryFile
from typing import Any, cast

from PIL import _imaging

_MAX_BYTES = 500
_STDERR = 2

_thread = threading.local()
_stderr_lock = threading.Lock()
# libtiff calls its handler with a module, a format and the values of the format as a va_list, which
# all calling conventions pass as one pointer.
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
# libtiff keeps only the address of a handler.
_handlers: list[object] = []


@contextmanager
def decoder_messages() -> Iterator[list[str]]:
    """Collect the errors that libtiff reports in this thread; silence Pillow's warnings and log."""
    _ignore_warnings()
    _ignore_log()
    _listen_to_libtiff()
    messages: list[str] = []
    _thread.messages = messages
    try:
        yield messages
    finally:
        _thread.messages = None


@contextmanager
def dropped_stderr_lines(pattern: bytes) -> Iterator[None]:
    """Drop the lines of standard error that match, and write all others when the block ends.

    For libraries in C that print to file descriptor 2 and cannot be told not to. The descriptor
    belongs to the whole process, so one thread at a time does this, and only briefly.
    """
    with _stderr_lock, ExitStack() as stack:
        try:
            terminal = os.dup(_STDERR)
            stack.callback(os.close, terminal)
            lines = stack.enter_context(TemporaryFile())
        except OSError:  # standard error is closed, or there is no place for temporary files
            yield
            return
        os.dup2(lines.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(terminal, _STDERR)
            lines.seek(0)
            with suppress(OSError), open(_STDERR, "wb", closefd=False) as stderr:
                stderr.writelines(line for line in lines if not re.search(pattern, line))


def _messages() -> list[str] | None:
    return getattr(_thread, "messages", None)


class _WhileOpening:
    """A pattern for filters of warnings that matches in threads that are opening an image."""

    def match(self, _: str) -> bool:
        return _messages() is not None


_OPENING = ("ignore", _WhileOpening(), Warning, None, 0)


def _ignore_warnings() -> None:
    """Ignore Pillow's warnings of damaged metadata and of large images in threads that open some.

    `warnings.filterwarnings` would silence all threads, and with them a program that wants to hear
    of large images. Whoever records warnings puts a filter before ours, so it is put first again.
    """
    filters = cast("list[Any]", warnings.filters)
    if not filters or filters[0] is not _OPENING:
        with suppress(ValueError):
            filters.remove(_OPENING)
        filters.insert(0, _OPENING)


@cache
def _ignore_log() -> None:
    """Keep errors that Pillow logs from the handler of last resort, which is the terminal."""
    logging.getLogger("PIL").addHandler(logging.NullHandler())


@cache
def _listen_to_libtiff() -> None:
    """Replace libtiff's error handler, which prints."""
    try:
        # Symbols are also looked up in the libraries that Pillow is linked with.
        set_handler = ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler
        format_message = ctypes.CDLL(None).vsnprintf
    except (AttributeError, OSError, TypeError):
        # Pillow has no libtiff, or one without public symbols, as on Windows.
        return
    set_handler.argtypes, set_handler.restype = [_Handler], _Handler

    def hear(module: bytes | None, text: bytes, values: int | None) -> None:
        messages = _messages()
        if messages is not None:
            buffer = ctypes.create_string_buffer(_MAX_BYTES)
            format_message(buffer, ctypes.c_size_t(_MAX_BYTES), text, ctypes.c_void_p(values))
            messages.append(buffer.value.decode("utf-8", "replace"))
        elif previous:
            previous(module, text, values)

    handler = _Handler(hear)
    _handlers.append(handler)
    previous = set_handler(handler)
