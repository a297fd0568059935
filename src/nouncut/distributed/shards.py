"""A source as shards: what one task reads. Each shard is described by a JSON file.

Shards are written while the source is listed, so that the list of all files is never in memory, and
an interrupted listing continues after its last shard.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nouncut.compute.progress import Progress, silent
from nouncut.distributed.features import feature_shards
from nouncut.distributed.shard_readers import FEATURES, describe_table
from nouncut.distributed.sources import SourceFile, read_lists, walk_files
from nouncut.distributed.storage import Options, Storage
from nouncut.errors import InputError, OutputError, printable_path

LISTING = "listing.json"
_BEGUN = "listing-of.json"
STAGE = "listing files"
# Few images per shard keep all workers busy with a small source, and many of them keep the number
# of files low for a large one. The total is not known in advance, so shards double in size.
_FIRST_IMAGES, _SHARDS_OF_A_SIZE, _MOST_IMAGES = 128, 64, 16_384
_BYTES_PER_IMAGE = 100_000
# Small pictures, of which most fit into a file: features have to fit into memory.
_FEWEST_BYTES_PER_IMAGE = 2000
# Features are copied a few times between the model and the file; models make at most this many
# numbers of an image.
_COPIES, _MOST_COLUMNS = 4, 4096
_SEEN_REASONS = 8

Shard = dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """What a source holds: `kind` is "images" or "features"."""

    kind: str
    # Of all files and their versions.
    digest: str
    n_shards: int
    n_files: int
    n_bytes: int
    n_skipped: int = 0
    # Numbers of the first shards of tars that have several: their parts are found by an index.
    large_tars: list[int] = field(default_factory=list)


def shard_name(number: int) -> str:
    """Return the file that describes a shard."""
    return f"listing/{number:05d}.json"


def rows_per_worker(worker_bytes: int) -> int:
    """Return how many images one task may encode."""
    return max(_FIRST_IMAGES, worker_bytes // (_COPIES * 4 * _MOST_COLUMNS))


def list_shards(
    storage: Storage,
    sources: Sequence[str],
    worker_bytes: int,
    options: Options | None = None,
    progress: Progress = silent,
) -> Listing:
    """Divide a source into shards, or return what an earlier attempt has listed.

    Parameters
    ----------
    storage : Storage
        Where the descriptions of the shards are written.
    sources : sequence of str
        Folders, files, patterns and URLs of images, tars, parquet files or ready features; text
        files (.txt, .lst) that list these.
    worker_bytes : int
        Memory that one task may use.
    options : mapping, optional
        What fsspec needs to open the sources; never written to a file.
    progress : callable, optional
        Called with the stage, and the number of files found twice.

    Returns
    -------
    Listing
        The kind of the source, and the number of its shards.

    Raises
    ------
    nouncut.errors.InputError
        If a source does not exist, cannot be read, or holds no images.
    """
    begun = storage.read_json(_BEGUN) if storage.size(_BEGUN) is not None else None
    if storage.size(LISTING) is not None:
        if begun != list(sources):
            raise OutputError(
                f"{storage.url} holds an unfinished run of other sources. Repeat the command that "
                "began it, or choose another folder with `output`."
            )
        return Listing(**storage.read_json(LISTING))
    writer = _ShardWriter(storage, sources, rows_per_worker(worker_bytes), progress)
    if begun != list(sources):
        storage.remove("listing")
    first, after = writer.resume()
    every = read_lists(sources, options or {})
    for number, source in enumerate(every[first:], first):
        writer.source = number
        for file in walk_files(source, options or {}, after):
            writer.add(file, options or {})
        after = ""
    listing = writer.finish()
    if not listing.n_files:
        listing = _list_features(storage, sources, worker_bytes, options or {}, writer)
    storage.write_json(LISTING, asdict(listing))
    return listing


class _ShardWriter:
    """Groups files into shards, and writes each as soon as it is full."""

    def __init__(
        self, storage: Storage, sources: Sequence[str], most_rows: int, progress: Progress
    ) -> None:
        self._storage, self._sources = storage, list(sources)
        self._most_rows, self._progress = most_rows, progress
        self._digest = hashlib.blake2b(digest_size=20)
        self.source = self._n_files = self._n_bytes = self._n_skipped = self._number = 0
        self._files: list[list[Any]] = []
        self._skipped: list[list[str]] = []
        self._large_tars: list[int] = []
        self._reasons: Counter[str] = Counter()
        self._has_images = False
        self._after = ""
        self.feature_files: list[str] = []

    def resume(self) -> tuple[int, str]:
        """Continue after the last complete shard; return its source and its last file."""
        known = len(self._storage.sizes("listing"))
        # All parts of a file are written again unless the last one was.
        while known and not _is_last_part(self._storage.read_json(shard_name(known - 1))):
            known -= 1
        for number in range(known):
            shard = self._storage.read_json(shard_name(number))
            self.source, self._after = shard["source"], shard["after"]
            self._count(shard)
        return self.source, self._after

    def add(self, file: SourceFile, options: Options) -> None:
        """Add a file of the source."""
        if file.kind in ("parquet", "npy") and (reason := self._reason_to_skip(file, options)):
            file = file._replace(kind="", reason=reason)
        if file.kind in ("tar", "parquet"):
            self._flush()
        self._after = file.path
        if file.kind == "image":
            self._files.append([file.path, file.size, file.version])
        elif file.kind:
            self._add_parts(file)
        else:
            self._skipped.append([file.path, file.reason])
        if len(self._files) + len(self._skipped) >= self._images_per_shard():
            self._flush()

    def finish(self) -> Listing:
        """Write what is left."""
        self._flush()
        return Listing(
            "images",
            self._digest.hexdigest(),
            self._number,
            self._n_files,
            self._n_bytes,
            self._n_skipped,
            self._large_tars,
        )

    def nothing_found(self, sources: Sequence[str]) -> InputError:
        """Return the error for a source without images."""
        seen = "; ".join(f"{n:,} x {why}" for why, n in self._reasons.most_common(_SEEN_REASONS))
        shown = ", ".join(printable_path(source) for source in sources)
        return InputError(
            f"No images found in {shown}. Seen: {seen or 'nothing at all'}. Pass a folder or a "
            "prefix with images, .tar files, .parquet files with a column of images, or features."
        )

    def _images_per_shard(self) -> int:
        grown = _FIRST_IMAGES << min(30, self._number // _SHARDS_OF_A_SIZE)
        return min(grown, _MOST_IMAGES, self._most_rows)

    def _add_parts(self, file: SourceFile) -> None:
        """Add a tar or parquet file, divided if it is large."""
        at_once = min(
            self._images_per_shard() * _BYTES_PER_IMAGE,
            self._most_rows * _FEWEST_BYTES_PER_IMAGE,
        )
        is_divided = file.kind == "parquet" or file.path.lower().endswith(".tar")
        n_parts = max(1, -(-file.size // at_once)) if is_divided else 1
        for part in range(n_parts):
            self._write(
                {
                    "kind": file.kind,
                    "path": file.path,
                    "size": file.size,
                    "version": file.version,
                    "part": part,
                    "n_parts": n_parts,
                }
            )

    def _flush(self) -> None:
        if self._files or self._skipped:
            self._write({"kind": "files", "files": self._files})

    def _write(self, shard: Shard) -> None:
        shard |= {"skipped": self._skipped, "source": self.source, "after": self._after}
        if not self._number:
            # Not earlier: a wrong source leaves nothing behind.
            self._storage.write_json(_BEGUN, self._sources)
        self._storage.write_json(shard_name(self._number), shard)
        self._files, self._skipped = [], []
        self._count(shard)
        if self._n_files:
            self._progress(STAGE, self._n_files, self._n_files)

    def _count(self, shard: Shard) -> None:
        is_first = shard.get("part", 0) == 0
        files = shard["files"] if shard["kind"] == "files" else []
        if shard["kind"] != "files" and is_first:
            files = [[shard["path"], shard["size"], shard["version"]]]
        for file in files:
            self._digest.update(json.dumps(file).encode())
        self._n_files += len(files)
        self._n_bytes += sum(size for _, size, _ in files)
        if shard["kind"] == "tar" and shard["n_parts"] > 1 and is_first:
            self._large_tars.append(self._number)
        self._n_skipped += len(shard["skipped"])
        self._reasons.update(reason for _, reason in shard["skipped"])
        self._number += 1

    def _reason_to_skip(self, file: SourceFile, options: Options) -> str:
        """Return why a table is no source of images; once one is, all are expected to be."""
        if file.kind == "parquet" and not self._has_images:
            reason = describe_table(file.path, options)
            self._has_images = not reason
        else:
            reason = FEATURES if file.kind == "npy" else ""
        if reason == FEATURES:
            self.feature_files.append(file.path)
        return reason


def _is_last_part(shard: Shard) -> bool:
    return bool(shard.get("part", 0) == shard.get("n_parts", 1) - 1)


def _list_features(
    storage: Storage,
    sources: Sequence[str],
    worker_bytes: int,
    options: Options,
    writer: _ShardWriter,
) -> Listing:
    """List ready features instead of images."""
    if not writer.feature_files:
        raise writer.nothing_found(sources)
    storage.remove("listing")
    shards = feature_shards(writer.feature_files, worker_bytes, options)
    about = [(shard["path"], shard["start"], shard["version"]) for shard in shards]
    digest = hashlib.blake2b(json.dumps(about).encode(), digest_size=20).hexdigest()
    storage.write_json(_BEGUN, list(sources))
    for number, shard in enumerate(shards):
        plain = {name: value for name, value in shard.items() if name != "options"}
        storage.write_json(shard_name(number), {"kind": "features", **plain})
    n_bytes = sum(4 * (one["stop"] - one["start"]) * one["width"] for one in shards)
    return Listing("features", digest, len(shards), len(writer.feature_files), n_bytes)
