from __future__ import annotations

import gc
import io
import os
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from distributed.core import Status
from filelock import FileLock

from nouncut import cluster_images
from nouncut.cli.demo import demo_images
from nouncut.distributed import shards
from nouncut.distributed.client import connect
from nouncut.distributed.encode import encode_shards
from nouncut.distributed.model import Model
from nouncut.distributed.shards import list_shards
from nouncut.distributed.stages import Engine
from nouncut.distributed.storage import Storage
from nouncut.models.choose import load_encoder
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.encode import encode_images
from nouncut.store.store import FeatureStore

# Workers import the tasks of the tests by name.
sys.path.insert(0, str(Path(__file__).parent))

from photographs import write_tars

N_IMAGES = 13
# Clusters of the made features.
K = 4
GIGABYTE = 10**9


def pytest_collection_modifyitems(items):
    """Workers and schedulers that are killed leave open what they cannot close any more."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            unraisable = "ignore::pytest.PytestUnraisableExceptionWarning"
            item.add_marker(pytest.mark.filterwarnings(unraisable))


@pytest.fixture(autouse=True)
def left_behind() -> Iterator[None]:
    """Collect what a test has left, so that no other test is blamed for it."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def processes() -> Iterator[Client]:
    """Return a client of two worker processes with a gigabyte each."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with connect("local:2", memory_limit=10**9) as found:
        yield found


@pytest.fixture
def kill_worker(processes) -> Callable[..., bool]:
    """Return a function that kills a worker of `processes`, if one starts within some seconds.

    One that is killed before its nanny knows that it has started is never replaced.
    """
    killed: set[int] = set()

    def kill(seconds: float = 120) -> bool:
        end = time.monotonic() + seconds
        while True:
            for nanny in processes.cluster.workers.values():
                process = nanny.process
                is_up = process is not None and process.status is Status.running
                if is_up and (pid := process.pid) not in killed:
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
                    return True
            if time.monotonic() > end:
                return False
            time.sleep(0.02)

    return kill


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """Return a client of one worker in this process, which runs two steps at once."""
    # All of the tests' memory counts as the worker's, which would stop working at 80 %.
    settings: dict[str, bool] = {
        f"distributed.worker.memory.{name}": False
        for name in ("target", "spill", "pause", "terminate")
    }
    # Dask's profile of what workers do takes a seventh of the time of small steps.
    settings["distributed.worker.profile.enabled"] = False
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            memory_limit="2GB",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as found,
    ):
        yield found


@pytest.fixture(scope="session")
def encoder():
    return load_encoder("mini", device="cpu").encoder


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> Path:
    """Return a folder of photographs in two subfolders; all but two can be used."""
    folder = tmp_path_factory.mktemp("photos")
    for number, path in enumerate(demo_images().paths[:N_IMAGES]):
        target = folder / ("a" if number < 5 else "b") / f"{number:03d}.jpg"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(folder / "a" / "003.jpg", folder / "b" / "copy of 003.jpg")
    (folder / "b" / "half.jpg").write_bytes((folder / "a" / "004.jpg").read_bytes()[:3000])
    (folder / "a.txt").write_text("notes")
    return folder


@pytest.fixture(scope="session")
def image_files(photos) -> list[Path]:
    return sorted(photos.glob("*/*"))


@pytest.fixture(scope="session")
def reference(photos, encoder, tmp_path_factory):
    """Return what one machine makes of the folder: hashes, visual and semantic features."""
    store = FeatureStore(tmp_path_factory.mktemp("cache"))
    images = encode_images(photos, encoder, store, n_jobs=1)
    rows = images.rows(np.arange(len(images.paths)))
    return images, encoder.visual(rows), encoder.semantic(rows)


class Encoded:
    """What the encode stage wrote, with all shards together."""

    def __init__(self, storage, results):
        self.results = results
        parts = range(len(results))
        self.features = np.concatenate([storage.read(f"features/{s:05d}.npy") for s in parts])
        self.semantic = np.concatenate([storage.read(f"semantic/{s:05d}.npy") for s in parts])
        files = [storage.read_bytes(f"images/{s:05d}.parquet") for s in parts]
        table = pa.concat_tables(pq.read_table(io.BytesIO(file)) for file in files).to_pylist()
        self.images = [row for row in table if row["row"] is not None]
        self.skipped = {row["path"]: row["error"] for row in table if row["row"] is None}

    @property
    def hashes(self):
        return [row["hash"] for row in self.images]


@pytest.fixture
def encode(client, encoder):
    """Return a function that lists and encodes a source."""

    def run(source, work, options=None, progress=None, workers=client, **kwargs):
        storage = work if isinstance(work, Storage) else Storage(str(work))
        sources = [str(one) for one in (source if isinstance(source, list) else [source])]
        listing = list_shards(storage, sources, GIGABYTE, options)
        engine = Engine(workers, storage, **({"progress": progress} if progress else {}))
        model = Model("mini", encoder.fingerprint, has_semantic=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = encode_shards(engine, listing, model, GIGABYTE, options=options, **kwargs)
        run.engine, run.warnings = engine, [str(one.message) for one in caught]
        return Encoded(storage, results)

    return run


@pytest.fixture
def small_shards(monkeypatch):
    """Return a function that sets the number of images per shard."""

    def set_size(n_images):
        monkeypatch.setattr(shards, "_FIRST_IMAGES", n_images)

    return set_size


@pytest.fixture
def same_as_one_machine(reference):
    """Return a check that features and hashes are those of one machine."""

    def check(found):
        images, visual, semantic = reference
        assert found.hashes == list(images.hashes)
        assert [len(found.features), len(found.semantic)] == [len(visual)] * 2
        np.testing.assert_allclose(found.features, visual, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.semantic, semantic, rtol=1e-4, atol=1e-5)

    return check


@pytest.fixture(scope="session")
def tars(image_files, tmp_path_factory) -> Path:
    """Return a folder of tars with the photographs."""
    folder = tmp_path_factory.mktemp("webdataset") / "tars"
    write_tars(image_files, folder)
    return folder


@pytest.fixture(scope="session")
def shared(tmp_path_factory, worker_id) -> Path:
    """Return a folder that all processes of the tests share."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def source(shared) -> Path:
    """Return a folder of features: two .npy files and a table with names."""
    folder = shared / "features" / "source"
    with FileLock(shared / "source.lock"):
        if not folder.exists():
            write_features(folder)
    return folder


def write_features(folder: Path) -> None:
    folder.mkdir(parents=True)
    features = make_clip_like(1500, K, dim=64, separation=0.45, random_state=0).features
    features[-5:] = features[:5]
    first, second, third = np.split(features, [600, 1100])
    np.save(folder / "a.npy", first)
    np.save(folder / "b.npy", second)
    columns = {"path": [f"/photos/{i}.jpg" for i in range(400)], "features": list(third)}
    pq.write_table(pa.table(columns), folder / "c.parquet", row_group_size=150)
    np.save(folder.parent / "whole.npy", features)


@pytest.fixture(scope="session")
def run(source, client, shared):
    """Return a run whose number of clusters was found; later processes find it finished."""
    with FileLock(shared / "run.lock"):
        return cluster_images(source, output=shared / "run", client=client, partitions=2)
