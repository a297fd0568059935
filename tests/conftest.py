from __future__ import annotations

import os

# Several test processes share the cores, and small matrices gain nothing from threads: two for
# each process take three times as long. Read when numpy and torch are imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Threads that wait must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Every process that a test starts would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Dask samples what its workers do a hundred times a second.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL", "1s")

import gc
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from PIL import Image
from scipy.sparse import csr_array

from nouncut.images.find import SkippedFile
from nouncut.images.hashing import content_hash
from nouncut.method.count import ClusterCount
from nouncut.method.estimator import NTKSpectralClustering
from nouncut.method.graphs import neighbor_graph, normalize_graph, symmetrize_graph
from nouncut.method.kernel import noun_probabilities
from nouncut.method.membership import cluster_membership
from nouncut.method.neighbors import kernel_neighbors
from nouncut.models.choose import ChosenEncoder
from nouncut.models.encoder import Encoder
from nouncut.paper.synthetic import ClipLikeData, make_clip_like
from nouncut.runs.cluster import run_request
from nouncut.runs.collection import Collection
from nouncut.runs.contents import result_manifest
from nouncut.runs.encode import ImageSet
from nouncut.runs.grouping import Groups
from nouncut.runs.job import Job
from nouncut.runs.run import Run
from nouncut.runs.settings import Settings
from nouncut.runs.tables import ASSIGNMENTS_SCHEMA, CLUSTERS_SCHEMA, images_table
from nouncut.runs.vocabulary import PositiveNouns, Vocabulary
from nouncut.runs.writer import RunContents, RunWriter
from nouncut.store.store import FeatureStore

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The same examples every time, however slow the machine is.
settings.register_profile(
    "tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

HOSTILE_FILES = (
    'double"quote.png',
    "single'quote.png",
    "two\nlines.png",
    "tab\there.png",
    "kitten \N{CAT FACE}.png",
    "<script>alert(1)</script>.png",
    "javascript:alert(1).png",
    "&amp;{{ 7 * 7 }}{% raw %}.png",
    "=HYPERLINK(1), a;b.png",
    "undecodable \udce9\udcff.png",
    "naïve café.png",
    "-rf.png",
)
HOSTILE_CLUSTERS = (
    '<b>"dog"</b>',
    "</script><script>alert('cat')</script>",
    "café\n\N{SNAKE}, =1+1",
)
CLUSTER_SIZES = (12, 8, 4)
SMALL_SETTINGS = Settings(prompts=("a photo of a {}.", "art of the {}."))


# The files that take longest, so that no process waits for another with one of them at the end.
LONG = (
    "explore/test_stories_in_browser.py",
    "distributed/test_run.py",
    "faults/test_store_and_command.py",
    "cli/test_bench.py",
    "cli/test_interrupted.py",
    "distributed/test_encode.py",
    "test_repository.py",
    "cli/test_cluster.py",
    "cli/test_edit.py",
    "distributed/test_fit.py",
    "method/test_footprint.py",
    "faults/test_image_attacks.py",
    "paper/baselines/test_density.py",
    "runs/test_cluster.py",
    "runs/test_update.py",
)


def pytest_collection_modifyitems(items):
    """Begin with long files; the others stay in their order."""
    tests = Path(__file__).parent
    ranks = {tests / name: rank for rank, name in enumerate(LONG)}
    items.sort(key=lambda item: ranks.get(item.path, len(LONG)))


def pytest_collection_finish():
    """Keep modules and collected tests out of garbage collections, which take half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def prompt_graphs():
    """Return a maker of the normalised graphs of all prompts, built as the estimator does."""

    def make(
        data: ClipLikeData, neighbors: str = "union", tau: float = 0.04, q: int = 30
    ) -> list[csr_array]:
        probabilities = noun_probabilities(data.features, data.noun_features, tau)
        found = kernel_neighbors(data.features, probabilities, q)
        directed = [neighbor_graph(nearest, len(data.features)) for nearest in found]
        return [normalize_graph(symmetrize_graph(graph, neighbors))[0] for graph in directed]

    return make


@pytest.fixture(scope="session")
def small_data() -> ClipLikeData:
    return make_clip_like(400, 5, n_prompts=3, n_nouns=80, separation=0.45, random_state=0)


@pytest.fixture(scope="session")
def shared_store(tmp_path_factory) -> FeatureStore:
    """Return a store in which images and words are encoded once for all tests."""
    return FeatureStore(tmp_path_factory.mktemp("shared-store"))


@pytest.fixture
def random_graphs():
    """Return a maker of small normalised graphs with positive random weights."""

    def make(n_images: int, n_graphs: int, seed: int) -> list[csr_array]:
        rng = np.random.default_rng(seed)
        graphs = []
        for _ in range(n_graphs):
            weights = np.triu(rng.random((n_images, n_images)) ** 4, 1)
            weights[weights < 0.05] = 0
            graphs.append(normalize_graph(csr_array(weights + weights.T))[0])
        return graphs

    return make


@pytest.fixture
def without_privileges():
    """Return a context in which the superuser has no more rights than others."""

    @contextmanager
    def drop() -> Iterator[None]:
        if os.geteuid():
            yield
            return
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    return drop


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """Return a file system of two megabytes in memory, if this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a file system can be mounted by root only")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.fixture(scope="session")
def make_run():
    """Return a maker of real runs: 24 little pictures in 3 clusters, with names that bite."""
    return write_small_run


@pytest.fixture
def seal():
    """Return a function that changes fields of a manifest and renews all checksums of a run."""
    return runpy.run_path(str(Path(__file__).parent / "faults" / "sealing.py"))["seal"]


@pytest.fixture
def small_run(tmp_path) -> Run:
    """Return a finished run in ``tmp_path / "run"`` with pictures in ``tmp_path / "photos"``."""
    return write_small_run(tmp_path / "run")


def write_small_run(
    directory: Path,
    *,
    photos: Path | None = None,
    manifest: dict | None = None,
    source_kind: str = "images",
    seed: int = 0,
) -> Run:
    """Write a run, its pictures beside it unless `photos` says where."""
    contents = small_contents(photos or directory.parent / "photos", manifest, source_kind, seed)
    with RunWriter(directory) as writer:
        writer.start(contents.manifest)
        return writer.finish(contents)


def small_contents(
    photos: Path, manifest: dict | None = None, source_kind: str = "images", seed: int = 0
) -> RunContents:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), CLUSTER_SIZES)
    if source_kind == "images":
        paths = _draw_pictures(photos, labels, rng)
        broken = photos / "broken <i>file.jpg"
        broken.write_bytes(b"")
        images = images_table(
            paths,
            hashes=[content_hash(path) for path in paths],
            sizes=[path.stat().st_size for path in paths],
            skipped=[SkippedFile(broken, "the file is empty")],
        )
    else:
        images = images_table([f"row {row}" for row in range(len(labels))])
    confidence = rng.uniform(0.5, 1, len(labels)).astype(np.float32)
    features = rng.normal(size=(len(labels), 16)).astype(np.float32)
    features += 5 * np.eye(16, dtype=np.float32)[labels]
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    graph = _same_cluster_graph(labels)
    return RunContents(
        manifest=_small_manifest(photos, source_kind) | (manifest or {}),
        assignments=_small_assignments(images, labels, confidence),
        clusters=_small_clusters(labels, confidence),
        images=images,
        arrays={
            "features": features,
            "embedding": np.eye(3)[labels],
            "graph_data": graph.data,
            "graph_indices": graph.indices,
            "graph_indptr": graph.indptr,
        },
    )


def _draw_pictures(photos: Path, labels: np.ndarray, rng: np.random.Generator) -> list[Path]:
    photos.mkdir(parents=True, exist_ok=True)
    paths = []
    for row, label in enumerate(labels):
        pixels = rng.integers(0, 80, (30, 40, 3), dtype=np.uint8)
        pixels[..., label] += 150
        name = HOSTILE_FILES[row] if row < len(HOSTILE_FILES) else f"{row}.png"
        path = photos / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.touch()
        except (OSError, UnicodeError):
            # Not every system takes every name.
            path = photos / f"{row}.png"
        Image.fromarray(pixels).save(os.fspath(path), "PNG")
        paths.append(path)
    return paths


def _same_cluster_graph(labels: np.ndarray) -> csr_array:
    weights = (labels[:, None] == labels).astype(np.float64)
    np.fill_diagonal(weights, 0)
    weights[0, -1] = weights[-1, 0] = 0.5
    return normalize_graph(csr_array(weights))[0]


def _small_assignments(images: pa.Table, labels: np.ndarray, confidence: np.ndarray) -> pa.Table:
    names = np.array(HOSTILE_CLUSTERS, dtype=object)
    second = (labels + 1) % 3
    return pa.table(
        {
            "path": images["path"].slice(0, len(labels)),
            "cluster": labels.astype(np.int32),
            "name": names[labels].tolist(),
            "confidence": confidence,
            "second_cluster": second.astype(np.int32),
            "second_name": names[second].tolist(),
            "second_confidence": (1 - confidence).astype(np.float32),
            "outlier": np.arange(len(labels)) == len(labels) - 1,
        },
        schema=ASSIGNMENTS_SCHEMA,
    )


def _small_clusters(labels: np.ndarray, confidence: np.ndarray) -> pa.Table:
    surest = np.argsort(-confidence, kind="stable")
    exemplars = [surest[labels[surest] == cluster][:12].tolist() for cluster in range(3)]
    return pa.table(
        {
            "cluster": range(3),
            "name": HOSTILE_CLUSTERS,
            "more_words": [["<u>puppy</u>", "hound"], ["kitten"], []],
            "name_confidence": [0.97, 0.12, 0.0],
            "guess": [False, True, False],
            "gloss": ["a domestic <animal> & friend", 'says "meow"', ""],
            "size": CLUSTER_SIZES,
            "cohesion": [0.99, 1.0, 0.86],
            "exemplars": exemplars,
            "borderline": [rows[::-1] for rows in exemplars],
        },
        schema=CLUSTERS_SCHEMA,
    )


class StandIn(Encoder):
    """An encoder that is only named, never run."""

    name, fingerprint, image_dim, text_dim = "mini", "mini-1", 512, 512

    def prepare(self, image):
        raise NotImplementedError

    def encode_prepared(self, batch):
        raise NotImplementedError

    def encode_texts(self, texts):
        raise NotImplementedError


def _small_manifest(photos: Path, source_kind: str) -> dict:
    about = {"warnings": ["1 file was <skipped>"], "seconds": {"encoding images": 1.5}}
    asked = run_request([str(photos)], SMALL_SETTINGS)
    return _result_of_a_small_fit() | {"source_kind": source_kind} | asked | about


@cache
def _result_of_a_small_fit() -> dict:
    """Return what the product writes about 24 made images, in three clusters with two prompts."""
    data = make_clip_like(24, 3, n_nouns=3, n_prompts=2, random_state=0)
    words = ["dog", "cat", "<snake>"]
    model = NTKSpectralClustering(3, random_state=0)
    model.fit(data.features, noun_features=data.noun_features, nouns=words)
    groups = Groups(
        model,
        count=ClusterCount(3, ((3, 0.9), (2, 0.4)), 0.8),
        nouns=PositiveNouns(words, data.noun_features),
        names=[],
        membership=cluster_membership(model.embedding_, model.cluster_centers_, temperature=0.2),
        outliers=np.array([23]),
    )
    collection = Collection(
        "images",
        ImageSet(tuple(map(str, range(24))), None, ()),
        data.features,
        data.features,
        model=ChosenEncoder(StandIn(), "no <CLIP>"),
        n_encoded=24,
    )
    vocabulary = Vocabulary(words, data.noun_features[0])
    job = Job(SMALL_SETTINGS, store=None, n_jobs=1)
    return result_manifest(collection, vocabulary, groups, job)


# Browsers

CHROMIUM = os.environ.get("NOUNCUT_CHROMIUM") or shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # In CI, a missing browser is a failure.
    if not (CHROMIUM and find_spec("playwright")) and not os.environ.get("CI"):
        pytest.skip("needs playwright and Chromium (apt install chromium, or NOUNCUT_CHROMIUM)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
