"""A file that stops being read when an image takes too long to open."""

from __future__ import annotations

import io
import time
from typing import Any

MAX_SECONDS = 5.0
# Readers that want a whole file at once keep it in memory, some of them twice.
_MAX_WHOLE = 250_000_000
# Readers go over a file a few times.
_MAX_READINGS, _SLACK = 4, 2**24
_READS_PER_LOOK, _FEW_BYTES = 64, 4096
# Reading a file of this size byte by byte takes a fraction of a second.
_SMALL_FILE = 2**18
TOO_SLOW = (
    f"takes more than {MAX_SECONDS:.0f} s of processor time to open; save the image again as JPEG"
)


class LimitError(Exception):
    """An image that would take too much memory or time, and why."""


class BoundedFile(io.BufferedReader):
    """A file that raises a `LimitError` after some seconds of the thread's processor time.

    Readers in Python, and decoders that are fed piece by piece, ask it for more again and again.
    """

    def __init__(self, raw: Any, n_bytes: int) -> None:
        super().__init__(raw)
        self._deadline = time.thread_time() + MAX_SECONDS
        self._n_bytes, self._n_reads = n_bytes, 0
        self._bytes_left = _MAX_READINGS * n_bytes + _SLACK

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as other files do."""
        if (size is None or size < 0) and self._n_bytes > _MAX_WHOLE:
            raise LimitError(
                f"too large when opened: a file of {self._n_bytes / 1e6:,.0f} MB; make the image "
                "smaller"
            )
        content = super().read(size)
        self._n_reads += 1
        # Asking for the time takes longer than reading a byte.
        if self._n_reads % _READS_PER_LOOK == 0 or len(content) > _FEW_BYTES:
            self._look(len(content))
        return content

    def _look(self, n_bytes: int) -> None:
        self._bytes_left -= n_bytes
        if self._bytes_left < 0 or time.thread_time() > self._deadline:
            raise LimitError(TOO_SLOW)


def bounded(file: io.BufferedReader, n_bytes: int) -> io.BufferedReader:
    """Return a bounded view of a file that nothing has been read from; small files are harmless."""
    return BoundedFile(file.raw, n_bytes) if n_bytes > _SMALL_FILE else file
