from __future__ import annotations

import csv

import fsspec
import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("moto")
pytest.importorskip("s3fs")

from s3_server import refuse, s3_server

from nouncut import open_run
from nouncut.cli.app import app
from nouncut.cli.console import StageBars
from nouncut.distributed.client import connect
from nouncut.distributed.shards import list_shards
from nouncut.distributed.storage import Storage
from nouncut.distributed.upload import check_destination
from nouncut.errors import InputError, OutputError


@pytest.fixture(scope="module")
def s3():
    with s3_server() as options:
        yield options


@pytest.fixture
def bucket(s3, photos, request):
    """Return a file system and a new bucket with the photographs."""
    system = fsspec.filesystem("s3", **s3)
    name = request.node.name.replace("_", "-")[:60]
    system.mkdir(name)
    for path in photos.rglob("*"):
        if path.is_file():
            system.pipe_file(f"{name}/photos/{path.relative_to(photos)}", path.read_bytes())
    return system, name


def test_a_prefix_gives_the_same(encode, s3, bucket, same_as_one_machine, tmp_path, small_shards):
    small_shards(7)
    name = bucket[1]
    found = encode(f"s3://{name}/photos", tmp_path / "work", s3)
    same_as_one_machine(found)
    assert found.images[0]["path"] == f"s3://{name}/photos/a/000.jpg"
    assert sorted(found.skipped) == [f"s3://{name}/photos/a.txt", f"s3://{name}/photos/b/half.jpg"]
    assert len(found.results) == 3


def test_work_can_be_on_s3_too(encode, s3, bucket, same_as_one_machine, tars):
    system, name = bucket
    for path in tars.glob("*.tar"):
        system.put_file(str(path), f"{name}/tars/{path.name}")
    cache = f"s3://{name}/cache"
    work = Storage(f"s3://{name}/run/work", s3)
    found = encode(f"s3://{name}/tars/*.tar", work, s3, cache=cache)
    same_as_one_machine(found)
    again = encode(f"s3://{name}/tars", Storage(f"s3://{name}/other/work", s3), s3, cache=cache)
    same_as_one_machine(again)
    assert [r["n_encoded"] for r in again.results] == [0, 0, 0]
    assert not any(b"secret" in system.cat_file(path) for path in system.find(f"{name}/run"))


def test_missing_objects_are_listed(encode, s3, bucket, tmp_path):
    system, name = bucket
    storage = Storage(str(tmp_path / "work"))
    list_shards(storage, [f"s3://{name}/photos"], 10**9, s3)
    system.rm_file(f"{name}/photos/a/001.jpg")
    found = encode(f"s3://{name}/photos", storage, s3)
    assert (
        found.skipped[f"s3://{name}/photos/a/001.jpg"] == "it is gone since the source was listed"
    )
    assert len(found.images) == 13
    assert found.results[0]["n_unread"] == 1
    assert "1 images in others could not be reached" in encode.warnings[0]


def test_refused_credentials_are_explained_and_tried_again(encode, s3, bucket, tmp_path):
    name = bucket[1]
    wrong = s3 | {"key": "stranger"}
    refuse(s3, "0")
    try:
        with pytest.raises(InputError, match=r"access was refused.*Check the credentials"):
            encode(f"s3://{name}/photos", tmp_path / "work", wrong)
        refuse(s3, "inf")
        storage = Storage(str(tmp_path / "work"))
        list_shards(storage, [f"s3://{name}/photos"], 10**9, wrong)
        refuse(s3, "0")
        with pytest.raises(InputError, match=r"None of the 16 files .*access was refused"):
            encode(f"s3://{name}/photos", storage, wrong)
        with pytest.raises(OutputError, match=r"cannot be used as `output`.*credentials"):
            check_destination(f"s3://{name}/run", "digest", wrong, replace=False)
    finally:
        refuse(s3, "inf")
    assert len(encode(f"s3://{name}/photos", storage, wrong).images) == 14


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("s3://no-such-bucket/photos", "does not exist"),
        ("carrier://pigeon", "cannot be listed"),
        ("/no/such/folder", "does not exist"),
        ("/no/such/*.tar", "Nothing matches the pattern"),
    ],
)
def test_wrong_sources_are_explained(s3, tmp_path, source, message):
    with pytest.raises(InputError, match=message):
        list_shards(Storage(str(tmp_path)), [source], 10**9, s3 if "://" in source else {})


@pytest.fixture
def environment(s3, tmp_path, monkeypatch):
    """Set the variables that people set, and start a worker; return the scheduler's address."""
    variables = {
        "AWS_ENDPOINT_URL": s3["endpoint_url"],
        "AWS_ACCESS_KEY_ID": s3["key"],
        "AWS_SECRET_ACCESS_KEY": s3["secret"],
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NOUNCUT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    # Workers of other tests started without these variables.
    with connect("local:1", memory_limit=10**9) as started:
        yield started.scheduler.address
    fsspec.filesystem("s3").clear_instance_cache()


def command(*words, code=0):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == code, found.output
    return " ".join((found.stdout + found.stderr).split())


def test_the_command_writes_a_run_to_a_bucket(s3, environment, source, tmp_path, monkeypatch):
    system = fsspec.filesystem("s3", **s3)
    system.mkdir("runs")
    url = "s3://runs/photos"
    np.save(tmp_path / "few.npy", np.load(source / "a.npy")[:, :16])
    system.put_file(str(tmp_path / "few.npy"), "runs/source/few.npy")
    cluster = ["cluster", "s3://runs/source", "-k", "2", "--scheduler", environment]
    cluster += ["--output", url]
    with monkeypatch.context() as patch:

        def interrupt(bars, stage, done, total):
            if stage == "finding neighbours" and done:
                raise KeyboardInterrupt

        patch.setattr(StageBars, "__call__", interrupt)
        assert "--resume" in command(*cluster, code=130)
    assert not system.exists("runs/photos/manifest.json")
    assert system.find("runs/photos/work")
    assert "no finished run" in command("report", url, code=3)
    said = command(*cluster, "--resume")
    assert f"Run: {url}, with a copy in" in said
    assert "dashboard" in said
    assert "Nothing is new" not in said
    assert "known from before" not in said
    system.invalidate_cache()
    assert not system.find("runs/photos/work")
    assert {"manifest.json", "report.html", "clusters.parquet"} <= {
        path.removeprefix("runs/photos/") for path in system.find("runs/photos")
    }
    again = open_run(url)
    assert len(again.labels) == 600
    stages = again.manifest["stages"]
    assert stages["features"]["n_finished"] == stages["features"]["n_tasks"] > 0
    assert "is copied to" in command("report", url)
    command("export", url, "-o", tmp_path / "groups.csv")
    with (tmp_path / "groups.csv").open() as file:
        assert [int(row["cluster"]) for row in csv.DictReader(file)] == again.labels.tolist()
    cluster[3] = "5"
    assert "holds a run of other images or settings" in command(*cluster, code=5)
