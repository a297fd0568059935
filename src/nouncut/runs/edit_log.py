"""The edit log of a run directory: JSON lines that are only ever appended to.

The first line says to which run the edits belong. Each line has a checksum of itself and of the
line before it, so that no line can be lost, changed or moved without notice. A writer that is
killed leaves at most an unfinished last line; readers ignore it, and the next writer removes it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from nouncut.compute.files import explained_writing, sync_folder
from nouncut.errors import InputError, OutputError, printable_path
from nouncut.runs.checksums import DIGEST_CHARACTERS, is_link, open_inside, short_digest
from nouncut.runs.directory import LOCK, damaged
from nouncut.runs.edits import Edit, checked_edit, clean_name, plain_edit
from nouncut.runs.manifest import read_manifest
from nouncut.runs.manifest_fields import CHECKSUM
from nouncut.runs.renames import saved_names
from nouncut.runs.tables import unicode_text

EDITS, EARLIER_EDITS = "edits.jsonl", "earlier-edits.jsonl"
FORMAT = 1

_MOST_BYTES = 512 * 2**20
# Edits take milliseconds; a run that is being written takes longer.
_PATIENCE = 10.0


@dataclass(frozen=True, eq=False)
class LoggedEdit:
    """An edit with its time (ISO 8601), what it does in words, and how many images it touches."""

    edit: Edit
    time: str
    text: str
    n_images: int


class EditLog(NamedTuple):
    """The edits of a run, and where the next one goes."""

    edits: tuple[LoggedEdit, ...] = ()
    tip: str = ""  # Checksum of the last line.
    n_bytes: int = 0  # Length without an unfinished line; 0 if there is no log of this run.


class LogFile:
    """The edit log of a run; lines that were understood before are only compared."""

    def __init__(self, directory: Path, manifest: Mapping[str, Any]) -> None:
        self._directory, self._manifest = directory, manifest
        self._known, self._digest = EditLog(), sha256()

    def read(self) -> EditLog:
        """Return the edits; names of earlier versions' ``names.json`` are the first edit."""
        path = self._directory / EDITS
        if os.path.lexists(path):
            with open_inside(path, self._directory) as file:
                content = file.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise damaged(path, "it is too long")
            log = _parse(content, path, self._manifest, self._unchanged(content))
            if log is not None:
                self._known, self._digest = log, sha256(content[: log.n_bytes])
                return log
        names = saved_names(self._directory, self._manifest)
        return EditLog((rename_entry(names),) if names else ())

    def _unchanged(self, content: bytes) -> EditLog:
        """Return the known edits if the content begins with them."""
        digest = sha256(content[: self._known.n_bytes])
        return self._known if digest.digest() == self._digest.digest() else EditLog()

    def append(self, plan: Callable[[tuple[LoggedEdit, ...]], LoggedEdit]) -> EditLog:
        """Append the edit that `plan` makes from all edits before it, and return all of them.

        The run is locked in between, so that no edit of another process is lost.
        """
        directory, manifest = self._directory, self._manifest
        with _locked(directory):
            if read_manifest(directory).get("id") != manifest.get("id"):
                raise InputError(
                    f"The run in {printable_path(directory)} was written anew since it was "
                    "opened. Open it again."
                )
            log = self.read()
            new = plan(log.edits)
            edits = (*log.edits, new)
            if log.n_bytes:
                content = _lines([_described(new)], log.tip)
            else:
                set_aside_log(directory, manifest)
                content = encode_log(manifest, edits)
            if log.n_bytes + len(content) > _MOST_BYTES:
                raise OutputError(
                    f"{printable_path(directory / EDITS)} is full. Cluster the images again: the "
                    "new run takes the edits over in a shorter form."
                )
            _append(directory / EDITS, content, log.n_bytes)
            if not log.n_bytes:
                self._digest = sha256()
            self._digest.update(content)
            self._known = EditLog(edits, _tip(content), log.n_bytes + len(content))
            return self._known


def read_log(directory: Path, manifest: Mapping[str, Any]) -> EditLog:
    """Return the edits of a run; names of earlier versions' ``names.json`` are its first edit."""
    return LogFile(directory, manifest).read()


def encode_log(manifest: Mapping[str, Any], edits: Sequence[LoggedEdit]) -> bytes:
    """Return a whole log as bytes."""
    head = {"format": FORMAT, "run": manifest.get("id")}
    return _lines([head, *map(_described, edits)], "")


def set_aside_log(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Rename a log that belongs to another run or is damaged, so that it is not lost."""
    path = directory / EDITS
    if not os.path.lexists(path):
        return
    try:
        with open_inside(path, directory) as file:
            content = file.read(_MOST_BYTES + 1)
            is_usable = _parse(content, path, manifest, EditLog()) is not None
    except InputError:
        is_usable = False
    if not is_usable:
        os.replace(path, directory / EARLIER_EDITS)


def rename_entry(names: Mapping[int, str], n_images: int = 0) -> LoggedEdit:
    """Return an edit that gives names again which a person once gave, without a date."""
    kept = ", ".join(f'"{name}"' for name in names.values())
    text = clean_name(f"keep the name{'s' * (len(names) > 1)} {kept}")
    return LoggedEdit({"kind": "rename", "names": dict(names)}, "", text, n_images)


def now() -> str:
    """Return the time as the log has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    lock = directory / LOCK
    with explained_writing("the edit", directory, "copy the run to another folder"):
        if is_link(lock):
            raise OutputError(f"{printable_path(lock)} is a link. Remove it.")
        try:
            with FileLock(lock, timeout=_PATIENCE):
                yield
        except Timeout as error:
            raise OutputError(
                f"Another process is writing to {printable_path(directory)}. Wait for it to end, "
                "and try again."
            ) from error


def _append(path: Path, content: bytes, n_bytes: int) -> None:
    """Append to a log of which only the first bytes count; it is on the disk afterwards."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise damaged(path, "it is not an ordinary file")
        os.ftruncate(descriptor, n_bytes)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, n_bytes)
            raise
    finally:
        os.close(descriptor)
    if not n_bytes:
        sync_folder(path.parent)


def _described(edit: LoggedEdit) -> dict[str, Any]:
    return {
        "edit": plain_edit(edit.edit),
        "time": edit.time,
        "text": unicode_text(edit.text),
        "images": edit.n_images,
    }


def _lines(records: Sequence[dict[str, Any]], tip: str) -> bytes:
    """Return records as lines, each with a checksum of itself and of the line before."""
    lines = []
    for record in records:
        tip = _checksum(record, tip)
        lines.append(json.dumps(record | {CHECKSUM: tip}, ensure_ascii=False).encode() + b"\n")
    return b"".join(lines)


def _tip(lines: bytes) -> str:
    """Return the checksum of the last line, which is its last field."""
    return lines[-3 - DIGEST_CHARACTERS : -3].decode()


def _checksum(record: Mapping[str, Any], tip: str) -> str:
    return short_digest((tip + json.dumps(record, sort_keys=True)).encode())


def _parse(
    content: bytes, path: Path, manifest: Mapping[str, Any], known: EditLog
) -> EditLog | None:
    """Return the edits in a log, of which some are known; None if it belongs to another run."""
    *lines, rest = content[known.n_bytes :].split(b"\n")
    first = len(known.edits) + 2 if known.n_bytes else 1  # the first line is no edit
    # A power cut may leave zeros in place of a line that was being written.
    if lines and not rest and b"\0\0" in lines[-1]:
        lines.pop()
    elif _goes_on(rest):
        raise _damaged_line(path, first + len(lines), "it does not end where it should")
    edits, tip, n_bytes = list(known.edits), known.tip, known.n_bytes
    for number, line in enumerate(lines, first):
        record, tip = _record(line, tip, path, number)
        n_bytes += len(line) + 1
        if number == 1:
            if record.get("format") != FORMAT:
                raise damaged(path, "its format is not known to this version of nouncut")
            if record.get("run") != manifest.get("id"):
                return None
        else:
            edits.append(_logged(record, manifest["n_images"], path, number))
    return EditLog(tuple(edits), tip, n_bytes)


def _goes_on(rest: bytes) -> bool:
    """Return whether something follows a whole line that lacks its end: no writer leaves that."""
    try:
        text = rest.decode("utf-8", "replace")
        return json.JSONDecoder().raw_decode(text)[1] < len(text)
    except (ValueError, RecursionError):
        return False


def _record(line: bytes, tip: str, path: Path, number: int) -> tuple[dict[str, Any], str]:
    try:
        record = json.loads(line)
        tip_of_line = record.pop(CHECKSUM)
        is_sound = _checksum(record, tip) == tip_of_line
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        is_sound = False
    if not is_sound:
        raise _damaged_line(path, number, "its checksum is wrong")
    return record, tip_of_line


def _logged(record: dict[str, Any], n_images: int, path: Path, number: int) -> LoggedEdit:
    try:
        edit = checked_edit(record.get("edit"), n_images)
    except ValueError as error:
        raise _damaged_line(path, number, str(error)) from error
    time, text, count = (record.get(name) for name in ("time", "text", "images"))
    if not isinstance(time, str) or not isinstance(text, str) or type(count) is not int:
        raise _damaged_line(path, number, "it lacks a field")
    return LoggedEdit(edit, time, text, count)


def _damaged_line(path: Path, number: int, reason: str) -> InputError:
    return InputError(
        f"Line {number} of {printable_path(path)} is damaged ({reason}). Remove this line and all "
        "after it to keep the edits before it, or the file to undo all edits."
    )
