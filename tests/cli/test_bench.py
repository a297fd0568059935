"""``nouncut bench`` and ``nouncut ablate``: from official files to the paper's tables."""

from __future__ import annotations

import csv
import json
import runpy
import signal
from pathlib import Path

import pytest

MAKERS = Path(__file__).parents[1] / "paper" / "conftest.py"
# Those that train a network take seconds each.
QUICK = "clip-zero-shot,clip-kmeans,tac-kmeans,ours"


@pytest.fixture(scope="module")
def cifar(tmp_path_factory) -> Path:
    """Return a folder with a tiny CIFAR-10 in the official binary format."""
    root = tmp_path_factory.mktemp("data")
    runpy.run_path(str(MAKERS))["make_cifar10"](root, n_test=80, n_classes=5)
    return root


@pytest.fixture(scope="module")
def pets(tmp_path_factory, draw) -> Path:
    root = tmp_path_factory.mktemp("folders") / "my pets"
    for number, name in enumerate(("cat", "dog", "rose")):
        draw(root / name, range(number, 60, 4))
    return root


def test_the_papers_cifar_column_from_one_command(nouncut, tiny_clip, cifar, words):
    """Official files and a CLIP model in; the classic table with published values out."""
    command = ("bench", "cifar-10", "--data-root", cifar, "--table", "classic", "--seeds", 2)
    options = ("--methods", QUICK, "--model", tiny_clip, "--vocabulary", words, "--output", "out")
    ended = nouncut(*command, *options)
    rows = {
        line.split(" | ")[0].strip("| "): line for line in ended.out.splitlines() if "|" in line
    }
    assert rows["method"].startswith(
        "| method | CIFAR-10 NMI | published | CIFAR-10 ACC | published"
    )
    assert rows["Ours"].split(" | ")[4] == "92.0"
    assert " ± " in rows["Ours"]
    assert rows["ProPos (published only)"].split(" | ")[1] == "-"
    assert rows["CLIP (KMeans)"].split(" | ")[2] == "70.3"
    assert "nouncut bench cifar-10" in ended.out
    table = read_csv(nouncut.folder / "out/classic-tiny.csv")
    ours = next(row for row in table if row["method"] == "ours" and row["metric"] == "ACC")
    assert float(ours["published"]) == 92.0
    assert 0 < float(ours["mean"]) <= 100
    assert ours["seeds"] == "2"
    assert (nouncut.folder / "out/classic-tiny.tex").read_text().count(r"\\") > 20
    assert json.loads((nouncut.folder / "out/classic-tiny.json").read_text())["about"]["date"]
    again = nouncut(*command, *options)
    assert "0 results computed" in again.err
    assert again.out == ended.out


def test_a_killed_benchmark_goes_on(nouncut, tiny_clip, pets, words, wait_for):
    command = ("bench", pets, "--methods", QUICK, "--model", tiny_clip, "--vocabulary", words)
    options = ("--seeds", 3, "--quick-nouns")
    started = nouncut.start(*command, *options, "--output", "killed")
    results = nouncut.folder / "killed/results"
    wait_for(lambda: len(list(results.rglob("*.json"))) > 1, started)
    started.send(signal.SIGKILL)
    started.wait()
    there = len(list(results.rglob("*.json")))
    resumed = nouncut(*command, *options, "--output", "killed")
    assert f"{12 - there} results computed, {there} were there already" in resumed.err
    whole = nouncut(*command, *options, "--output", "whole")
    assert scores(nouncut.folder / "killed") == scores(nouncut.folder / "whole")
    assert "ublished" not in whole.out


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def scores(folder: Path) -> list[tuple[str, ...]]:
    rows = read_csv(folder / "methods-tiny.csv")
    return [(row["method"], row["dataset"], row["metric"], row["mean"]) for row in rows]


def test_times_and_leaks(nouncut, tiny_clip, pets, words):
    common = ("--model", tiny_clip, "--vocabulary", words, "--seeds", 1, "--quick-nouns")
    times = nouncut("bench", pets, "--table", "time", *common)
    assert "| my pets | tiny | 45 | 3 |" in times.out
    assert "A100" in times.out
    leak = nouncut("bench", pets, "--table", "leak", *common)
    assert "| WordNet w/o ground-truth class name |" in leak.out


def test_figures_from_one_command(nouncut, tiny_clip, pets, words):
    common = ("--model", tiny_clip, "--vocabulary", words, "--seeds", 1, "--quick-nouns")
    ended = nouncut("ablate", pets, "--vary", "tau", *common)
    paths = [nouncut.folder / line for line in ended.out.splitlines()]
    assert [path.name for path in paths] == [
        f"tau-my-pets-tiny.{end}" for end in ("svg", "png", "csv")
    ]
    assert "<svg" in paths[0].read_text()
    assert {row["value"] for row in read_csv(paths[2])} >= {"0.01", "0.04", "0.16"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("cifar-10", "--data-root", "."), 3, "cifar-10-binary.tar.gz"),
        (("cifar-10",), 3, "--data-root"),
        (("no such folder",), 3, "neither a folder nor a data set"),
        (
            (".", "--methods", "hers"),
            2,
            "--methods has 'hers'",
        ),
        ((), 2, "Name a data set or a folder"),
        (("--table", "rad", "--methods", "clip-kmeans", "."), 2, "tac-kmeans"),
    ],
)
def test_what_is_wrong_is_said(nouncut, arguments, code, words):
    ended = nouncut("bench", *arguments, code=code)
    assert words in " ".join(ended.err.split())


def test_pickles_are_not_opened(nouncut):
    (nouncut.folder / "cifar-10-batches-py").mkdir()
    (nouncut.folder / "cifar-10-batches-py/data_batch_1").write_bytes(b"\x80\x04.")
    ended = nouncut("bench", "cifar-10", "--data-root", ".", code=3)
    assert "binary version" in ended.err
