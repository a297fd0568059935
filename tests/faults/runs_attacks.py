"""Attacks on run directories: damaged files, crafted contents, links and special files.

A damaged run is refused, or read as it was. A crafted one, with checksums as a stranger would write
them, may say anything, but every error is a sentence of nouncut's own, nothing hangs, nothing
outside is changed, and no secret gets into a report or an export.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from sealing import seal
from tally import Tally

from nouncut.compute.rows import Projection
from nouncut.errors import NouncutError
from nouncut.exports.registry import EXPORTS, export_run
from nouncut.images.find import SkippedFile
from nouncut.images.hashing import content_hash
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.membership import cluster_membership
from nouncut.paper.synthetic import ClipLikeData, make_clip_like
from nouncut.report.write import write_report
from nouncut.runs.check import check_run
from nouncut.runs.checksums import forget_checksums
from nouncut.runs.cluster import run_request
from nouncut.runs.collection import Collection
from nouncut.runs.contents import run_contents
from nouncut.runs.edit_log import EDITS, rename_entry
from nouncut.runs.grouping import Groups
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.predict import _place, known_familiar_rows
from nouncut.runs.run import Run, open_run
from nouncut.runs.settings import Settings
from nouncut.runs.vocabulary import PositiveNouns, Vocabulary
from nouncut.runs.writer import RunWriter
from nouncut.words.cluster_names import ClusterName

N_IMAGES, N_CLUSTERS = 16, 3
SECRET = b"-----BEGIN PRIVATE KEY----- do not tell"
TABLES = ("assignments", "clusters", "images")
# As it is, and as pages embed files.
_SECRETS = (SECRET, b64encode(SECRET)[:-4])
_SECONDS = 30
_SETTINGS = Settings(prompts=("a photo of a {}.", "art of the {}."))

Attack = tuple[str, Callable[[Path], None]]


@cache
def _data() -> ClipLikeData:
    return make_clip_like(N_IMAGES, N_CLUSTERS, dim=16, n_nouns=4, n_prompts=2, random_state=0)


def make_run(folder: Path) -> Run:
    """Write a run with every table and array, its pictures, and a secret that it must not leak."""
    (folder / "secret").write_bytes(SECRET)
    photos = folder / "photos"
    photos.mkdir()
    rng = np.random.default_rng(0)
    paths = [photos / f"{number}.png" for number in range(N_IMAGES)]
    for path in paths:
        Image.fromarray(rng.integers(0, 255, (20, 30, 3), dtype=np.uint8)).save(path)
    data = _data()
    words = ["cat", "dog", "sea", "tree"]
    # As if the visual features had been projected.
    dim = data.features.shape[1]
    view = Projection(np.zeros(dim, np.float32), np.eye(dim, dtype=np.float32))
    model = NTKSpectralClustering(N_CLUSTERS, random_state=0)
    model.fit(data.features, noun_features=data.noun_features, nouns=words)
    collection = Collection(
        "images",
        ImageSet(
            tuple(map(str, paths)),
            tuple(map(content_hash, paths)),
            (SkippedFile(photos / "empty.jpg", "the file is empty"),),
        ),
        data.features,
        data.features,
        views=(view,),
        lengths=np.ones(N_IMAGES, np.float32),
    )
    groups = Groups(
        model,
        count=None,
        nouns=PositiveNouns(words, data.noun_features),
        names=[ClusterName(word, ("thing",), "", 0.5) for word in words[:N_CLUSTERS]],
        membership=cluster_membership(model.embedding_, model.cluster_centers_, temperature=0.2),
        outliers=np.array([N_IMAGES - 1]),
    )
    job = Job(_SETTINGS, store=None, n_jobs=1)  # type: ignore[arg-type]
    vocabulary = Vocabulary(words, data.noun_features[0])
    contents = run_contents(collection, vocabulary, groups, model.embedding_[:, :2], job)
    about = {"seconds": {"clustering": 1.0}, "warnings": ["none"], "content": "0" * 64}
    contents.manifest.update(run_request([str(photos)], _SETTINGS) | about)
    with RunWriter(folder / "run") as writer:
        return writer.finish(replace(contents, edits=[rename_entry({0: "My cats"})]))


def files_of(directory: Path) -> list[str]:
    """Return the files of a run that say what it is."""
    names = sorted(path.name for path in (directory / "arrays").iterdir())
    return [
        "manifest.json",
        EDITS,
        *(f"{name}.parquet" for name in TABLES),
        *(f"arrays/{name}" for name in names),
    ]


def read_run(directory: Path) -> list[Any]:
    """Return everything that a run says."""
    forget_checksums()
    run = open_run(directory)
    arrays = json.loads((directory / "manifest.json").read_bytes())["arrays"]
    return [
        run.manifest,
        run.history,
        *(getattr(run, name) for name in TABLES),
        *(run.array(name).tobytes() for name in arrays),
    ]


def use_run(directory: Path) -> None:
    """Do with a run whatever can be done with one; what is refused once may be allowed next."""
    forget_checksums()
    for use in (check_run, _look_at, _predict, _report, *_EXPORTS):
        with suppress(NouncutError):
            use(directory)


def _look_at(directory: Path) -> None:
    run = open_run(directory)
    parts = ("labels", "names", "skipped", "assignments", "clusters", "images", "report")
    uses = [run.paths, run.map, run.graph, run._repr_html_, run.common_folder, run.__repr__]
    for use in (*uses, partial(run.explain, 0), *(partial(getattr, run, part) for part in parts)):
        with suppress(NouncutError):
            use()


def _predict(directory: Path) -> None:
    run = open_run(directory)
    data = _data()
    images = ImageSet(tuple(map(str, range(N_IMAGES))), None, ())
    queries = Collection("images", images, data.features, data.features)
    _place(run, queries, Job(_SETTINGS, store=None, n_jobs=1))  # type: ignore[arg-type]
    known_familiar_rows(run)


def _report(directory: Path) -> None:
    write_report(open_run(directory), n_jobs=1)


def _export(to: str, directory: Path, **options: Any) -> None:
    export_run(open_run(directory), to, **options)


_EXPORTS = (
    *(partial(_export, to) for to in EXPORTS),
    partial(_export, "csv", overwrite=True),
    partial(_export, "tree", link="copy"),
    partial(_export, "xmp", beside=True),
)


# Damage


def flipped_bits(folder: Path, per_file: int = 64, seed: int = 0) -> Tally:
    """Flip single bits in every part of every file of a run."""
    return _damage(folder, "bits flipped in runs", partial(_flips, per_file, seed))


def cut_files(folder: Path, per_file: int = 8, seed: int = 0) -> Tally:
    """Cut every file of a run, and add to it."""
    return _damage(folder, "files of runs cut", partial(_cuts, per_file, seed))


def _flips(per_file: int, seed: int, content: bytes) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)
    n = min(per_file, len(content))
    # One in each of equal parts, and the first and last bytes, which hold headers and footers.
    places = {int(len(content) * (part + chance.random()) / n) for part in range(n)}
    ends = min(16, n)
    places |= {*range(ends), *range(len(content) - ends, len(content))}
    for place in sorted(places):
        bit = chance.randrange(8)
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        yield f"bit {bit} of byte {place}", bytes(changed)


def _cuts(per_file: int, seed: int, content: bytes) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)
    lengths = {0, 1, len(content) - 1} | {chance.randrange(len(content)) for _ in range(per_file)}
    for length in sorted(lengths):
        yield f"cut to {length}", content[:length]
    yield "one byte more", content + b"\0"
    yield "twice", content + content


def _damage(
    folder: Path, kind: str, changes: Callable[[bytes], Iterator[tuple[str, bytes]]]
) -> Tally:
    tally = Tally(kind)
    directory = make_run(folder).directory
    was = read_run(directory)
    for name in files_of(directory):
        path = directory / name
        content = path.read_bytes()
        accepted = [was]
        if name == EDITS:
            # A log that ends early is that of a killed writer: it opens without the last edits.
            path.write_bytes(b"")
            accepted.append(read_run(directory))
        for change, changed in changes(content):
            _replace(path, changed)
            is_cut = change.startswith("cut")
            check = partial(_is_refused_or_as_before, directory, accepted if is_cut else [was])
            with _time_limit():
                tally.attempt(f"{name}, {change}", check)
        _replace(path, content)
    return tally


def _replace(path: Path, content: bytes) -> None:
    # A new file: what was read before is remembered by the file's number and times.
    path.unlink()
    path.write_bytes(content)


def _is_refused_or_as_before(directory: Path, accepted: list[list[Any]]) -> None:
    try:
        found = read_run(directory)
    except NouncutError:
        return
    if not any(_is_same(was, found) for was in accepted):
        raise AssertionError("the run says something else")


def _is_same(was: list[Any], found: list[Any]) -> bool:
    return all(
        old.equals(new) if isinstance(old, pa.Table) else old == new
        for old, new in zip(was, found, strict=True)
    )


# Crafted contents


def crafted_columns(folder: Path, limit: int | None = None, seed: int = 0) -> Tally:
    """Give every column of every table values that no run has."""
    return _campaign(folder, "columns of runs crafted", _column_attacks, limit, seed)


def crafted_arrays(folder: Path, limit: int | None = None, seed: int = 0) -> Tally:
    """Give every array values, shapes, types and headers that no run has."""
    return _campaign(folder, "arrays of runs crafted", _array_attacks, limit, seed)


def crafted_manifests(folder: Path, limit: int | None = None, seed: int = 0) -> Tally:
    """Give every field of a manifest values that no run has."""
    return _campaign(folder, "manifests crafted", _manifest_attacks, limit, seed)


def special_files(folder: Path, limit: int | None = None, seed: int = 0) -> Tally:
    """Put links, pipes, devices and folders in the place of every file and folder of a run."""
    return _campaign(folder, "links and special files in runs", _special_attacks, limit, seed)


def stolen_paths(folder: Path, limit: int | None = None, seed: int = 0) -> Tally:
    """Let a run name files that are none of its images."""
    return _campaign(folder, "runs that name other files", _path_attacks, limit, seed)


def _campaign(
    folder: Path,
    kind: str,
    attacks: Callable[[Path], Iterator[Attack]],
    limit: int | None,
    seed: int,
) -> Tally:
    tally = Tally(kind)
    sound = make_run(folder).directory
    use_run(sound)
    chosen = list(attacks(sound))
    if limit is not None and limit < len(chosen):
        chosen = random.Random(seed).sample(chosen, limit)
    attacked = folder / "attacked"
    for name, attack in chosen:
        shutil.copytree(sound, attacked, symlinks=True)
        _remove_sidecars(folder)
        with _time_limit():
            tally.attempt(name, partial(_harms_nothing, attack, attacked, folder))
        shutil.rmtree(attacked)
    return tally


def _harms_nothing(attack: Callable[[Path], None], directory: Path, folder: Path) -> None:
    attack(directory)
    before = _outside(folder)
    use_run(directory)
    with suppress(NouncutError), RunWriter(directory):
        pass
    if _outside(folder) != before:
        raise AssertionError("a file outside of the run was changed")
    for path in directory.rglob("*"):
        if path.is_symlink() or not path.is_file() or path.samefile(folder / "secret"):
            continue
        if any(secret in path.read_bytes() for secret in _SECRETS):
            raise AssertionError(f"the secret is in {path.relative_to(directory)}")


def _outside(folder: Path) -> dict[Path, bytes]:
    paths = [folder / "secret", *(folder / "photos").glob("*.png"), *(folder / "out").rglob("*")]
    return {path: path.read_bytes() for path in paths if path.is_file()}


def _remove_sidecars(folder: Path) -> None:
    for path in (folder / "photos").glob("*.xmp"):
        path.unlink()
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    (folder / "out" / "mine").write_bytes(b"mine")


def _column_attacks(sound: Path) -> Iterator[Attack]:
    for name in TABLES:
        schema = pq.read_schema(sound / f"{name}.parquet")
        for field in schema:
            for label, values in _values_for(field.type):
                yield (
                    f"{name}.{field.name}: {label}",
                    partial(_set_column, name, field.name, values),
                )
        yield f"{name}: a row less", partial(_edit_table, name, lambda table: table.slice(1))
        twice = partial(_edit_table, name, lambda table: pa.concat_tables([table, table]))
        yield f"{name}: twice", twice


def _values_for(kind: pa.DataType) -> Iterator[tuple[str, Callable[[int], pa.Array]]]:
    yield "null", lambda n: pa.nulls(n, kind)
    yield "no column", lambda n: None  # type: ignore[arg-type, return-value]
    yield "another type", lambda n: pa.array([{"a": 1}] * n)
    values: list[Any] = []
    if pa.types.is_integer(kind):
        values = [-1, 0, 1, 3, 999, 2**31 - 1, -(2**31)]
    elif pa.types.is_floating(kind):
        values = [float("nan"), float("inf"), float("-inf"), -1.0, 3.4e38]
    elif pa.types.is_string(kind):
        values = ["", "\0", "a\0b", "../../x", "/", "..", "\x1b[2J", "x" * 100_000, "\ud7ff\n<b>"]
    elif pa.types.is_binary(kind):
        values = [b"", b"\0", b"/etc/passwd", b"\xff\xfe", b"..", b"/"]
    elif pa.types.is_list(kind):
        inner = kind.value_type
        numbers = [[-1], [999], [2**31 - 1], [None], list(range(N_IMAGES)) * 50]
        values = numbers if pa.types.is_integer(inner) else [[None], ["\0"], [""], ["x"] * 999]
    elif pa.types.is_boolean(kind):
        values = [True, False]
    for value in values:
        label = repr(value)[:40]
        yield f"all {label}", lambda n, value=value: pa.array([value] * n, kind)
        yield f"one {label}", lambda n, value=value: ("one", value)  # type: ignore[misc]


def _set_column(name: str, column: str, values: Callable[[int], Any], directory: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        place, new = table.schema.get_field_index(column), values(len(table))
        if new is None:
            return table.drop_columns(column)
        if isinstance(new, tuple):
            rows = table[column].to_pylist()
            rows[len(rows) // 2] = new[1]
            new = pa.array(rows, table.schema.field(column).type)
        return table.set_column(place, column, new)

    _edit_table(name, change, directory)


def _edit_table(name: str, change: Callable[[pa.Table], pa.Table], directory: Path) -> None:
    path = directory / f"{name}.parquet"
    table = change(pq.read_table(path, use_threads=False))
    path.unlink()
    pq.write_table(table, path)
    seal(directory)


def _array_attacks(sound: Path) -> Iterator[Attack]:
    for path in sorted((sound / "arrays").iterdir()):
        for label, change in _ARRAY_CHANGES.items():
            yield f"{path.stem}: {label}", partial(_edit_array, path.name, change)
        for at in range(0, 128, 4):
            yield f"{path.stem}: header byte {at}", partial(_edit_header, path.name, at)
        yield f"{path.stem}: gone", partial(_remove_array, path.name)


def _filled(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def fill(array: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.full_like(array, np.array(value).astype(array.dtype))

    return fill


def _first(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def put(array: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            array.reshape(-1)[:1] = np.array(value).astype(array.dtype)
        return array

    return put


_ARRAY_CHANGES: dict[str, Callable[[np.ndarray], Any]] = {
    **{f"one {value:g}": _first(value) for value in (np.nan, np.inf, -np.inf, -1, 1e30, 2**31 - 1)},
    **{f"all {value:g}": _filled(value) for value in (np.nan, np.inf, -1, 0, 1, 1e38, 999)},
    "a row less": lambda array: array[1:] if array.ndim else array,
    "a row more": lambda array: np.concatenate([array, array[:1]]) if array.ndim else array[None],
    "a column less": lambda array: array[..., 1:] if array.ndim else array,
    "no rows": lambda array: array[:0] if array.ndim else array,
    "an axis more": lambda array: array[None],
    "flat": lambda array: array.reshape(-1),
    "transposed": lambda array: np.ascontiguousarray(array.T),
    "Fortran's order": np.asfortranarray,
    "float16": lambda array: array.astype(np.float16),
    "bytes": lambda array: array.astype(np.uint8),
    "complex": lambda array: array.astype(complex),
    "text": lambda array: array.astype("U8"),
    "objects": lambda array: array.astype(object),
    "dates": lambda array: array.astype("i8").astype("M8[s]"),
    "records": lambda array: np.zeros(array.shape, [("a", "f4"), ("b", "i4")]),
}


def _edit_array(name: str, change: Callable[[np.ndarray], Any], directory: Path) -> None:
    path = directory / "arrays" / name
    array = np.load(path)
    path.unlink()
    with np.errstate(all="ignore"):
        np.save(path, change(array), allow_pickle=True)
    seal(directory)


def _edit_header(name: str, at: int, directory: Path) -> None:
    path = directory / "arrays" / name
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << (at // 4 % 8)
    _replace(path, bytes(content))
    seal(directory)


def _remove_array(name: str, directory: Path) -> None:
    (directory / "arrays" / name).unlink()
    seal(directory)


_JSON: tuple[Any, ...] = (
    None, -1, 0, 10**30, 2**31 - 1, 0.5, 1e308, "", "x", "\ud800", "\x1b[2J", "../..", True, [], {},
    [None], [[]], [{}], ["a"], ["\0"], [1], [[1, 2, 3]], {"a": 1}, {"a": None}, {"name": 5},
    {"words": [5]}, {"candidates": [[1]]}, {"weight": "x"}, [{"template": 1, "weight": 2}],
)  # fmt: skip


def _manifest_attacks(sound: Path) -> Iterator[Attack]:
    fields = json.loads((sound / "manifest.json").read_bytes())
    for name in (*fields, "earlier_run", "unmatched_names", "cluster_count", "noun_trust"):
        yield f"{name}: missing", partial(_drop_field, name)
        for value in _JSON:
            label = repr(value)[:40]
            yield f"{name}: {label}", partial(_set_field, name, value)
    deep: Any = 0
    for _ in range(500):
        deep = [deep]
    yield "500 lists in each other", partial(_set_field, "extra", deep)
    yield "an array out of the folder", partial(_set_field, "arrays", ["../../secret"])
    yield (
        "settings of other types",
        partial(
            _set_field, "settings", {"prompts": 5, "vocabulary": [1], "tau": {}, "lexicons": "a"}
        ),
    )


def _set_field(name: str, value: Any, directory: Path) -> None:
    with suppress(ValueError, RecursionError):
        seal(directory, **{name: value})


def _drop_field(name: str, directory: Path) -> None:
    path = directory / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest.pop(name, None)
    if name == "files":
        manifest.pop("checksum")
    _replace(path, json.dumps(manifest).encode())


# Links and special files


def _special_attacks(sound: Path) -> Iterator[Attack]:
    folder = sound.parent
    (thumbnails, *_) = sorted((sound / "report-thumbnails").iterdir())
    thumbnail = next(thumbnails.iterdir()).relative_to(sound)
    places = [
        *files_of(sound),
        "arrays",
        "report.html",
        "report-thumbnails",
        str(thumbnails.relative_to(sound)),
        str(thumbnail),
        "run.lock",
        *(f"exports/{export.file_name}" for export in EXPORTS.values()),
        "exports/xmp/0.png.xmp",
        "exports/tree/dog",
        "exports/tree/.nouncut-tree.json",
        "exports/fiftyone/samples.json",
        "exports/fiftyone/brain",
        "exports/album/index.html",
        "exports/album/pictures",
        "exports",
    ]
    for place in places:
        for label, make in _SPECIAL.items():
            yield f"{place}: {label}", partial(_put, place, partial(make, folder))
    for name in ("complete-manifest.json.1.nouncut-new", "manifest.json.1.nouncut-new"):
        for label, make in _SPECIAL.items():
            yield f"{name}: {label}", partial(_put, name, partial(make, folder))


def _put(place: str, make: Callable[[Path], None], directory: Path) -> None:
    path = directory / place
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)


_SPECIAL: dict[str, Callable[[Path, Path], None]] = {
    "link to a secret": lambda folder, path: path.symlink_to(folder / "secret"),
    "hard link to a secret": lambda folder, path: os.link(folder / "secret", path),
    "link to a folder": lambda folder, path: path.symlink_to(folder / "out"),
    "link to nowhere": lambda folder, path: path.symlink_to(folder / "out" / "nothing"),
    "link to itself": lambda folder, path: path.symlink_to(path),
    "link to /dev/zero": lambda folder, path: path.symlink_to("/dev/zero"),
    "pipe": lambda folder, path: os.mkfifo(path),
    "folder": lambda folder, path: path.mkdir(),
    "empty": lambda folder, path: path.write_bytes(b""),
}


# Paths of other files


def _path_attacks(sound: Path) -> Iterator[Attack]:
    folder = sound.parent
    targets = [folder / "secret", Path("/etc/passwd"), Path("/dev/zero"), folder / "out", Path("/")]
    targets += [folder / "photos" / ".." / "secret", Path("//") / str(folder)[1:] / "secret"]
    for target in targets:
        for source in (["photos"], None, ["secret"], ["."], ["photos/*.png"], ["list.txt"]):
            sources = source and [str(folder / name) for name in source]
            yield f"{target} of {source}", partial(_name_file, target, sources)


def _name_file(target: Path, sources: list[str] | None, directory: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        paths = table["path"].to_pylist()
        paths[0] = str(target)
        return table.set_column(table.schema.get_field_index("path"), "path", pa.array(paths))

    for name in ("assignments", "images"):
        _edit_table(name, change, directory)
    seal(directory, source=sources)
    for made in ("report-thumbnails", "exports"):
        shutil.rmtree(directory / made)


# Processes that end


def clean_exits(folder: Path, n_processes: int = 500) -> Tally:
    """Open a run and end at once: no thread may be left that still wants the interpreter."""
    tally = Tally("processes that open a run and end")
    directory = make_run(folder).directory
    script = f"import nouncut; nouncut.open_run({str(directory)!r}).clusters"
    for number in range(n_processes):
        tally.attempt(
            f"process {number}",
            lambda: subprocess.run([sys.executable, "-c", script], check=True, capture_output=True),
        )
    return tally


@contextmanager
def _time_limit() -> Iterator[None]:
    """Turn a hang into an exception, where the system can."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"it took more than {_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
