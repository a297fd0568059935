"""Shards of images into features: one task per shard."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nouncut.compute.checks import warn_user
from nouncut.distributed.features import read_shard
from nouncut.distributed.model import Model, load_agreed
from nouncut.distributed.shard_readers import (
    AccessError,
    DamageError,
    Item,
    Shard,
    describe_access,
    shard_items,
    tar_index,
)
from nouncut.distributed.shards import LISTING, Listing, rows_per_worker, shard_name
from nouncut.distributed.stages import Engine, Result, Task
from nouncut.distributed.storage import Options, Storage
from nouncut.errors import ImageError, InputError, printable_path
from nouncut.images.find import SkippedFile
from nouncut.images.hashing import image_bytes_hash, image_hash
from nouncut.images.open import DECODE_MARGIN, open_image, open_image_bytes
from nouncut.images.read_ahead import run_ahead
from nouncut.models.encoder import Encoder
from nouncut.runs.tables import images_table

STAGE = "encoding images"
_INDEX = "index"
_SETTLED = "encoded.json"
# Models may round differently in batches of other sizes: the last batch of a shard is filled up, so
# that copies of an image have the same features in all shards.
_GROUP, _BATCH = 8, 32
# Reading ahead hides the latency of object stores; larger images are read one at a time.
_THREADS, _AHEAD, _LARGE_BYTES = 4, 16, 8_000_000
# Increase it when the files of a shard change.
_CACHE_VERSION = 1
_FILES = (
    "features/{:05d}.npy",
    "images/{:05d}.parquet",
    # If nouns are in another space: what compares images with them, and what the model made.
    "semantic/{:05d}.npy",
    "rows/{:05d}.npy",
)
_SHOWN_ERRORS = 3


class _Loaded(NamedTuple):
    path: str
    size: int
    content: str
    prepared: NDArray[Any] | None
    reason: str = ""
    is_unread: bool = False


@dataclass
class _Encoded:
    """What became of the images of a shard."""

    paths: list[str] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    rows: list[NDArray[np.float32]] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    # Images that may be read in another attempt.
    n_unread: int = 0
    # Why the shard could not be read to its end.
    error: str = ""
    # A path and a reason: the shard's, else of an image that could not be reached, else of any.
    problem: list[str] = field(default_factory=list)


def encode_shards(
    engine: Engine,
    listing: Listing,
    model: Model | None,
    worker_bytes: int,
    *,
    options: Options | None = None,
    cache: str | None = None,
) -> list[Result]:
    """Encode all shards of a source, and return what became of each.

    Writes ``features/``, ``semantic/`` if nouns are in another space, and ``images/``, one file
    per shard. Shards and images that cannot be read are listed in the tables of images. While no
    later stage has begun, a resumed run tries again what could not be reached.

    Parameters
    ----------
    engine : Engine
        Runs the tasks.
    listing : Listing
        What `list_shards` returned.
    model : Model or None
        None for ready features of an unknown model.
    worker_bytes : int
        Memory that one task may use.
    options : mapping, optional
        What fsspec needs to open the source and the cache.
    cache : str, optional
        A folder or URL where the features of unchanged shards are kept for other runs.

    Returns
    -------
    list of dict
        For every shard ``n_rows``, ``n_skipped``, ``n_encoded``, ``n_unread`` and ``error``.

    Raises
    ------
    nouncut.errors.InputError
        If no image can be read.
    """
    if listing.kind == "features" or model is None:
        tasks = _feature_tasks(engine.storage, listing, model, options or {})
        return engine.run("features", tasks, "reading features")
    if engine.storage.size(_SETTLED) is not None:
        settled: list[Result] = engine.storage.read_json(_SETTLED)
        _warn_of_loss(settled)
        return settled
    engine.forget(_INDEX, lambda result: bool(result["error"]))
    engine.forget(STAGE, lambda result: bool(result["n_unread"] or result["error"]))
    spans = tar_spans(engine, listing, options or {})
    common = {
        "model": model._asdict(),
        "worker_bytes": worker_bytes,
        "options": dict(options or {}),
        "cache": cache,
    }
    tasks = [
        Task(f"{number:05d}", encode_shard, {"number": number, "span": spans.get(number), **common})
        for number in range(listing.n_shards)
    ]
    results = engine.run(STAGE, tasks, STAGE)
    if not any(result["n_rows"] for result in results):
        raise _nothing_left(results)
    _warn_of_loss(results)
    # Later stages count on these rows: from here on, nothing is tried again.
    engine.storage.write_json(_SETTLED, results)
    return results


def encoded_shards(storage: Storage) -> tuple[Listing, list[int]] | None:
    """Return the shards of images and how many images of each have features, if all are done."""
    if storage.size(_SETTLED) is None:
        return None
    listing = Listing(**storage.read_json(LISTING))
    return listing, [result["n_rows"] for result in storage.read_json(_SETTLED)]


def encode_shard(
    storage: Storage,
    number: int,
    model: dict[str, Any],
    worker_bytes: int,
    options: Options,
    span: Sequence[int] | None = None,
    cache: str | None = None,
) -> Result:
    """Encode the images of one shard, or copy what another run made of the same files."""
    shard = storage.read_json(shard_name(number))
    if span is not None:
        shard |= {"start": span[0], "stop": span[1]}
    wanted, encoder = Model(**model), load_agreed(model["name"], model["fingerprint"])
    kept = Storage(cache, options) if cache else None
    key = _cache_key(shard, wanted) if kept else None
    if kept and key and (result := _copy_cached(kept, key, storage, number, wanted)):
        return result
    found = _encode(shard_items(shard, options), encoder, rows_per_worker(worker_bytes))
    if found.error:
        found.skipped.append(SkippedFile(shard["path"], found.error))
        found.problem = [shard["path"], found.error]
    found.skipped += [SkippedFile(path, reason) for path, reason in shard["skipped"]]
    result = _write(storage, number, found, encoder, wanted)
    if kept and key and not (found.error or found.n_unread):
        _keep(kept, key, storage, number, result)
    return result


def _feature_tasks(
    storage: Storage, listing: Listing, model: Model | None, options: Options
) -> list[Task]:
    name, tasks = model.name if model else "auto", []
    for number in range(listing.n_shards):
        shard = storage.read_json(shard_name(number)) | {"options": dict(options)}
        arguments = {"number": number, "shard": shard, "model": name}
        tasks.append(Task(f"{number:05d}", read_shard, arguments))
    return tasks


def tar_spans(engine: Engine, listing: Listing, options: Options) -> dict[int, list[int]]:
    """Return where the parts of large tars begin and end, by the number of the shard."""
    tasks = [
        Task(f"{number:05d}", tar_index, {"number": number, "options": dict(options)})
        for number in listing.large_tars
    ]
    results = engine.run(_INDEX, tasks, "reading tars") if tasks else []
    spans = {}
    for first, result in zip(listing.large_tars, results, strict=True):
        starts = result["starts"]
        for part in range(len(starts) - 1):
            spans[first + part] = [starts[part], starts[part + 1]]
    return spans


def _encode(items: Iterator[Item], encoder: Encoder, most_rows: int) -> _Encoded:
    found, waiting = _Encoded(), []
    load = _loader(encoder)
    for _, loaded in run_ahead(
        lambda item: item if isinstance(item, _Loaded) else load(item),
        _until_damaged(items, found, load, most_rows),
        _THREADS,
        _AHEAD,
    ):
        if loaded.prepared is None:
            found.skipped.append(SkippedFile(loaded.path, loaded.reason))
            if not found.problem or (loaded.is_unread and not found.n_unread):
                found.problem = [loaded.path, loaded.reason]
            found.n_unread += loaded.is_unread
            continue
        waiting.append(loaded.prepared)
        found.paths.append(loaded.path)
        found.hashes.append(loaded.content)
        found.sizes.append(loaded.size)
        if len(waiting) == _BATCH:
            found.rows.append(_encode_batch(encoder, waiting))
            waiting.clear()
    if waiting:
        found.rows.append(_encode_batch(encoder, waiting))
    return found


def _until_damaged(
    items: Iterator[Item], found: _Encoded, load: Callable[[Item], _Loaded], most_rows: int
) -> Iterator[Item | _Loaded]:
    """Yield images up to the first damage: what comes before it can be used."""
    try:
        for position, item in enumerate(items):
            if position == most_rows:
                raise DamageError(
                    f"it has more than {most_rows:,} images, and a worker has no memory for more: "
                    "divide the file"
                )
            yield load(item) if item.size > _LARGE_BYTES else item
    except DamageError as error:
        found.error = f"{error}; images before that are used"
    except AccessError as error:
        found.error = str(error)


def _loader(encoder: Encoder) -> Callable[[Item], _Loaded]:
    side = encoder.input_side
    min_side = None if side is None else DECODE_MARGIN * side

    def load(item: Item) -> _Loaded:
        path, size = item.path, item.size
        if item.reason:
            return _Loaded(path, size, "", None, item.reason)
        try:
            if item.read is None:
                content = image_hash(path)
                image = open_image(path, min_side=min_side)
            else:
                whole = item.read()
                size, content = len(whole), image_bytes_hash(whole, path)
                image = open_image_bytes(whole, path, min_side=min_side)
        except ImageError as error:
            return _Loaded(path, size, "", None, error.reason)
        except Exception as error:  # every kind of storage has its own errors
            return _Loaded(path, size, "", None, describe_access(error), is_unread=True)
        return _Loaded(path, size, content, encoder.prepare(image))

    return load


def _encode_batch(encoder: Encoder, images: list[NDArray[Any]]) -> NDArray[np.float32]:
    n_missing = -len(images) % _GROUP
    return encoder.encode_prepared(np.stack([*images, *[images[-1]] * n_missing]))[: len(images)]


def _write(
    storage: Storage, number: int, found: _Encoded, encoder: Encoder, model: Model
) -> Result:
    rows = np.concatenate([np.empty((0, encoder.image_dim), np.float32), *found.rows])
    found.rows.clear()
    names = [name.format(number) for name in _FILES]
    storage.write(names[0], np.asarray(encoder.visual(rows), np.float32))
    if model.has_semantic:
        semantic = encoder.semantic(rows) if len(rows) else np.empty((0, encoder.text_dim))
        storage.write(names[2], np.asarray(semantic, np.float32))
        storage.write(names[3], rows)
    table = images_table(found.paths, hashes=found.hashes, sizes=found.sizes, skipped=found.skipped)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    storage.write_bytes(names[1], buffer.getbuffer())
    return {
        "n_rows": len(rows),
        "n_skipped": len(found.skipped),
        "n_encoded": len(rows),
        "n_unread": found.n_unread,
        "error": found.error,
        "problem": found.problem,
    }


def _warn_of_loss(results: Sequence[Result]) -> None:
    """Warn of what was lost for another reason than that single images are broken."""
    bad = [result for result in results if result["error"] or result["n_unread"]]
    if bad:
        path, reason = bad[0]["problem"]
        n_unread = sum(result["n_unread"] for result in bad)
        images = f", and {n_unread:,} images in others could not be reached" if n_unread else ""
        n_damaged = sum(bool(result["error"]) for result in bad)
        warn_user(
            f"{n_damaged:,} of {len(results):,} shards could not be read to their ends{images}. "
            f"They are listed among the skipped files. The first: {printable_path(path)}: {reason}."
        )


def _nothing_left(results: Sequence[Result]) -> InputError:
    """Return the error for a source of which nothing can be read, with the first reasons."""
    problems = [result["problem"] for result in results if result["problem"]]
    shown = "; ".join(
        f"{printable_path(path)}: {reason}" for path, reason in problems[:_SHOWN_ERRORS]
    )
    n_skipped = sum(result["n_skipped"] for result in results)
    return InputError(f"None of the {n_skipped:,} files can be used. {shown}.")


def _cache_key(shard: Shard, model: Model) -> str | None:
    """Return what identifies a shard's content and its model; None if versions are unknown."""
    files = shard.get("files") or [[shard["path"], shard["size"], shard["version"]]]
    if not all(version for _, _, version in files):
        return None
    part = [shard.get(name) for name in ("part", "n_parts", "start", "stop", "skipped")]
    about = json.dumps([_CACHE_VERSION, model.fingerprint, files, part])
    return hashlib.blake2b(about.encode(), digest_size=20).hexdigest()


def _copy_cached(
    kept: Storage, key: str, storage: Storage, number: int, model: Model
) -> Result | None:
    if kept.size(f"{key}/result.json") is None:
        return None
    receipt = kept.read_json(f"{key}/result.json")
    for name in _FILES if model.has_semantic else _FILES[:2]:
        content = kept.read_bytes(f"{key}/{_plain(name)}")
        if len(content) != receipt["files"][_plain(name)]:
            return None
        storage.write_bytes(name.format(number), content)
    result: Result = receipt["result"] | {"n_encoded": 0}
    return result


def _keep(kept: Storage, key: str, storage: Storage, number: int, result: Result) -> None:
    """Copy the files of a shard to the cache; what is written last says that they are there."""
    files = {}
    for name in _FILES:
        if name.format(number) in storage.written:
            content = storage.read_bytes(name.format(number))
            kept.write_bytes(f"{key}/{_plain(name)}", content)
            files[_plain(name)] = len(content)
    kept.write_json(f"{key}/result.json", {"files": files, "result": result})


def _plain(name: str) -> str:
    return name.replace("/{:05d}", "")
