"""From files of features to a run that every reader opens."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from nouncut import cluster_images
from nouncut.compute.rows import unit_rows
from nouncut.distributed import coarsen
from nouncut.distributed.cells import Coupling
from nouncut.distributed.coarsen import (
    COARSE,
    count_micro_clusters,
    group_rows,
    group_shard,
)
from nouncut.distributed.features import feature_shards
from nouncut.distributed.placing import Placing, place_shard, read_placed
from nouncut.distributed.sizes import Sizes
from nouncut.distributed.storage import Storage
from nouncut.errors import InputError, OutputError, ParameterError
from nouncut.exports.registry import export_run
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.predict import predict_images
from nouncut.runs.run import open_run
from nouncut.store.store import FeatureStore

K = 4


@pytest.fixture(scope="module")
def one_machine(source, tmp_path_factory):
    output = tmp_path_factory.mktemp("one") / "run"
    return cluster_images(source.parent / "whole.npy", K, output=output, n_jobs=1)


def test_the_run_is_that_of_one_machine(run, one_machine):
    assert adjusted_rand_score(run.labels, one_machine.labels) >= 0.98
    for field in ("n_images", "n_clusters", "n_copies", "n_skipped", "n_neighbors", "tree"):
        assert run.manifest[field] == one_machine.manifest[field]
    for field in ("membership_temperature", "least_familiarity"):
        assert run.manifest[field] == pytest.approx(one_machine.manifest[field], rel=0.05)
    assert sorted(run.manifest["arrays"]) == sorted(one_machine.manifest["arrays"])
    assert run.clusters.schema == one_machine.clusters.schema
    assert (
        np.corrcoef(*(np.asarray(one.assignments["confidence"]) for one in (run, one_machine)))[
            0, 1
        ]
        > 0.99
    )
    assert run.manifest["cluster_count"]["n_clusters"] == K
    assert not (run.directory / "work").exists()


def test_a_known_run_is_returned(run, source, client):
    again = cluster_images(source, output=run.directory, client=client, partitions=2)
    assert again.manifest["id"] == run.manifest["id"]


def test_images_keep_their_order_and_names(run, source):
    paths = run.images["path"].to_pylist()
    assert paths[0] == "row 0"
    assert paths[600] == "row 0"
    assert paths[-1] == "/photos/399.jpg"
    features = np.load(source.parent / "whole.npy")
    assert np.array_equal(run.array("features"), features)


def test_every_reader_opens_the_run(run, source, tmp_path):
    assert open_run(run.directory).report.exists()
    np.save(tmp_path / "new.npy", np.load(source / "b.npy"))
    found = predict_images(run, tmp_path / "new.npy").table["cluster"].to_numpy()
    assert np.array_equal(found, run.labels[600:1100])
    assert export_run(run, "csv", tmp_path / "groups.csv").path.exists()


def test_an_interrupted_run_is_resumed_without_repetition(client, source, run, tmp_path):
    def interrupt(stage, done, total):
        if stage == "exchanging edges" and done:
            raise KeyboardInterrupt

    plain = {"output": tmp_path / "run", "client": client}
    work = tmp_path / "run" / "work"
    nodes, receipt = work / "nodes", work / "receipts" / "features" / "00000.json"
    with pytest.raises(KeyboardInterrupt):
        cluster_images(source, K, progress=interrupt, partitions=1, **plain)
    assert len(list(nodes.iterdir())) == 1
    with pytest.raises(InputError, match="unfinished"):
        open_run(tmp_path / "run")
    with pytest.raises(OutputError, match="Continue it with `resume=True`"):
        cluster_images(source, K, **plain)
    with pytest.raises(OutputError, match="other settings"):
        cluster_images(source, K + 1, resume=True, **plain)
    written = receipt.stat().st_mtime_ns
    with pytest.raises(KeyboardInterrupt):
        cluster_images(source, K, resume=True, progress=interrupt, partitions=2, **plain)
    # What does not depend on the number of partitions is kept.
    assert len(list(nodes.iterdir())) == 2
    assert receipt.stat().st_mtime_ns == written
    again = cluster_images(source, K, resume=True, **plain)
    assert np.array_equal(again.labels, run.labels)
    stages = again.manifest["stages"]
    for stage in ("features", "sample", "cells", "sort", "nodes", "neighbors-0"):
        assert stages[stage]["n_finished"] == stages[stage]["n_tasks"] > 0
    assert stages["cut-off"]["n_finished"] == 0


def test_workers_that_are_killed_in_every_stage_change_nothing(
    processes, kill_worker, source, run, tmp_path
):
    surely = {"reading features", "finding neighbours", "finding eigenvectors"}
    killed: set[str] = set()

    def kill(stage, done, total):
        # Elsewhere, workers that were killed before may not be back yet.
        if stage not in killed and kill_worker(120 if stage in surely else 0):
            killed.add(stage)

    again = cluster_images(
        source, K, progress=kill, output=tmp_path / "run", client=processes, partitions=2
    )
    assert np.array_equal(again.labels, run.labels)
    assert surely <= killed


def test_wrong_sources_are_explained(client, tmp_path):
    def cluster(path):
        return cluster_images(path, K, output=tmp_path / f"{path.stem} run", client=client)

    with pytest.raises(InputError, match="does not exist"):
        cluster(tmp_path / "nothing")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00v")
    with pytest.raises(InputError, match=r"broken\.npy cannot be read"):
        feature_shards([str(tmp_path / "broken.npy")], 10**9)
    np.save(tmp_path / "short.npy", np.zeros((700, 8)))
    (tmp_path / "short.npy").write_bytes((tmp_path / "short.npy").read_bytes()[:-100])
    with pytest.raises(InputError, match=r"short\.npy cannot be read \(it ends early\)"):
        feature_shards([str(tmp_path / "short.npy")], 10**9)
    np.save(tmp_path / "flat.npy", np.zeros(5))
    with pytest.raises(InputError, match="matrix of numbers"):
        feature_shards([str(tmp_path / "flat.npy")], 10**9)
    rows = np.random.default_rng(0).normal(size=(700, 8))
    rows[650, 3] = np.nan
    np.save(tmp_path / "nan.npy", rows)
    with pytest.raises(InputError, match=r"nan\.npy: row 650"):
        cluster(tmp_path / "nan.npy")
    np.save(tmp_path / "few.npy", rows[:100])
    with pytest.raises(ParameterError, match="too few for a cluster"):
        cluster(tmp_path / "few.npy")
    assert not (tmp_path / "nothing run").exists()


def test_resuming_needs_a_cluster(source, tmp_path):
    with pytest.raises(ParameterError, match="need a `client`"):
        cluster_images(source, K, resume=True, output=tmp_path, store=FeatureStore(tmp_path))


def test_images_of_micro_clusters_are_placed_one_by_one(client, tmp_path):
    made = make_clip_like(3000, K, dim=256, separation=0.3, random_state=0)
    (tmp_path / "source").mkdir()
    for number, part in enumerate(np.array_split(made.features, 2)):
        np.save(tmp_path / "source" / f"{number}.npy", part)
    np.save(tmp_path / "whole.npy", made.features)
    coarse = cluster_images(
        tmp_path / "source", K, output=tmp_path / "run", client=client, partitions=2, coarsen=600
    )
    # With the clusters of their micro-clusters, images would reach 0.93.
    assert adjusted_rand_score(made.labels, coarse.labels) > 0.98
    micro = coarse.manifest["micro_clusters"]
    assert 500 <= micro["number"] <= 600
    assert 0.5 < micro["mean_cosine"] < 1
    assert coarse.manifest["n_images"] == 3000
    assert coarse.clusters["size"].to_pylist() == np.bincount(coarse.labels).tolist()
    assert coarse.clusters["cluster"].to_pylist() == list(range(K))
    for row in coarse.clusters.to_pylist():
        # Typical images are images of the cluster.
        assert (coarse.labels[row["exemplars"]] == row["cluster"]).all()
    assert coarse.sample is not None
    assert np.array_equal(coarse.sample.labels, coarse.labels[coarse.sample.rows])
    found = predict_images(coarse, tmp_path / "whole.npy").table["cluster"].to_numpy()
    assert np.mean(found == coarse.labels) > 0.95


def test_no_cluster_of_micro_clusters_becomes_empty(tmp_path):
    storage, rng = Storage(str(tmp_path)), np.random.default_rng(0)
    features = unit_rows(np.abs(rng.normal(size=(50, 8))).astype(np.float32))
    storage.write("features/00000.npy", features)
    storage.write(f"{COARSE}/members/centers.npy", np.eye(2))
    # All landmarks are in the first cluster.
    storage.write_several(
        f"{COARSE}/landmarks/00000.npz",
        axes=np.tile([1.0, 0], (5, 1)),
        degrees=np.ones((5, 1)),
        mean=np.ones(5),
        features=features[:5],
    )
    placing = Placing(1, 3, [1.0], 0.1, Coupling()._asdict())._asdict()
    assert place_shard(storage, 0, [[7, 1]], placing) == {"sizes": [49, 1]}
    placed = read_placed(storage, 0)
    assert np.flatnonzero(placed.label == 1).tolist() == [7]
    assert placed.second[7] == 0
    assert placed.confidence[7] < placed.second_confidence[7]
    # A shard of broken images.
    storage.write("features/00001.npy", features[:0])
    assert place_shard(storage, 1, [], placing) == {"sizes": [0, 0]}
    assert group_shard(storage, 1, 1, Coupling()._asdict()) == {"n_rows": 0, "cosine": 0}


@pytest.mark.parametrize("n_wanted", [1, 30, 200])
def test_rows_are_grouped_within_cells(monkeypatch, n_wanted):
    monkeypatch.setattr(coarsen, "MOST_CENTERS", 20)
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(40, 16))
    kinds = rng.integers(0, 40, 800)
    rows = unit_rows(centers[kinds] + 0.05 * rng.normal(size=(800, 16))).astype(np.float32)
    groups = group_rows(rows, n_wanted)
    sizes = np.bincount(groups)
    assert sizes.all()
    assert abs(len(sizes) - n_wanted) <= n_wanted // 4
    if n_wanted == 200:  # Enough groups for every kind to have its own.
        pairs = np.unique(np.stack([groups, kinds]), axis=1)
        assert pairs.shape[1] == len(sizes)
    # Equal rows cannot be told apart.
    assert not group_rows(np.ones((100, 4), np.float32), 50).any()


def test_micro_clusters_are_made_if_vectors_do_not_fit():
    assert count_micro_clusters("auto", Sizes(10**6, 512, 7, 2 * 10**9, 4)) is None
    assert count_micro_clusters("never", Sizes(10**9, 512, 7, 2 * 10**9, 4)) is None
    sizes = Sizes(10**9, 512, 7, 2 * 10**9, 4)
    many = count_micro_clusters("auto", sizes)
    assert many is not None
    assert 10**6 < many < 10**8
    # A few columns of vectors and the graph of so many nodes fit beside each other.
    assert sizes.panel(many, many) >= 8 > sizes.panel(2 * many, 2 * many)
    # Slightly too many images become a quarter, not slightly fewer micro-clusters.
    few = Sizes(sizes.most_nodes + 1, 512, 7, 2 * 10**9, 4)
    assert count_micro_clusters("auto", few) == few.n_images // 4
    with pytest.raises(ParameterError, match="half of the images"):
        count_micro_clusters("600", Sizes(1000, 512, 7, 2 * 10**9, 4))
