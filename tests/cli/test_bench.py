"""``nouncut bench`` and ``nouncut ablate``: from official files to the paper's tables."""

from __future__ import annotations

import csv
import json
import runpy
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from nouncut.paper.datasets.dataset_files import packaged_lines
from nouncut.paper.published import TableName
from nouncut.paper.tables.paper_tables import table_layout

SYNSETS = ("n01440764", "n01443537", "n01484850")
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


@pytest.fixture(scope="module")
def imagenets(tmp_path_factory) -> Path:
    """Return a folder with a tiny ImageNet and its variants in their official layouts."""
    root = tmp_path_factory.mktemp("imagenets")
    make = runpy.run_path(str(MAKERS))
    make["make_imagenet"](root, *SYNSETS)
    make_variants(root, SYNSETS, n=11)
    return root


def make_variants(root: Path, synsets: Sequence[str], n: int) -> None:
    make = runpy.run_path(str(MAKERS))["make_folders"]
    for part in ("gaussian_noise/1", "fog/3"):
        make(root / "ImageNet-C" / part, *synsets, n=n)
    make(root / "imagenetv2-matched-frequency-format-val", "0", "1", "2", n=n)
    make(root / "sketch", *synsets, n=n)


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
    assert "CLIP (zero-shot), tiny: ACC of its labels as given" in ended.out
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


@pytest.fixture(scope="module")
def official(tmp_path_factory) -> Path:
    """Return a folder with all data sets of the paper, tiny, in their official formats."""
    root = tmp_path_factory.mktemp("official")
    make = runpy.run_path(str(MAKERS))
    names = ("cifar10", "cifar100", "stl10", "dtd", "ucf101")
    for name in (*names, "aircraft", "food", "flowers", "pets", "cars"):
        make[f"make_{name}"](root)
    synsets = {*packaged_lines("imagenet-10.txt"), *packaged_lines("imagenet-dogs.txt")}
    make["make_imagenet"](root, *sorted(synsets))
    make_variants(root, sorted(synsets)[:3], n=4)
    return root


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> Path:
    """Return an output folder that tables share: many have the same results."""
    return tmp_path_factory.mktemp("output")


@pytest.mark.parametrize("table", get_args(TableName))
def test_every_table_from_official_files(nouncut, tiny_clip, official, output, words, table):
    command = ("bench", "--table", table, "--data-root", official, "--model", tiny_clip)
    methods = () if table == "time" else ("--methods", "ours,ours-prompt-2,tac-kmeans")
    options = ("--vocabulary", words, "--seeds", 1, "--output", output)
    ended = nouncut(*command, *methods, *options)
    if table == "time":
        assert "| ImageNet-1K | tiny | 24 | 24 |" in ended.out
        return
    rows = read_csv(output / f"{table}-tiny.csv")
    cells = [row for row in rows if row["method"] and row["dataset"] != "Average"]
    assert len({row["dataset"] for row in cells}) == len(table_layout(table).datasets)
    assert {row["method"].split("-")[0] for row in cells} >= {"ours"}
    for row in cells:
        assert row["mean"], row
        assert row["published"], row


def header(out: str) -> str:
    return next(line for line in out.splitlines() if line.startswith("|"))


def test_domain_shift_needs_no_names(nouncut, tiny_clip, imagenets, words):
    common = ("--data-root", imagenets, "--table", "shift", "--methods", "ours,tac-kmeans")
    common += ("--model", tiny_clip, "--vocabulary", words, "--seeds", 1, "--output", "out")
    ended = nouncut("bench", *common)
    assert "| ImageNet-C/gaussian_noise/1 NMI | published |" in header(ended.out)
    assert "ImageNet-V2 ACC" in header(ended.out)
    ours = {
        (row["dataset"], row["metric"]): row
        for row in read_csv(nouncut.folder / "out/shift-tiny.csv")
        if row["method"] == "ours"
    }
    assert ours["ImageNet-C/gaussian_noise/1", "ACC"]["published"] == "44.0"
    assert ours["Average", "ACC"]["published"]
    everything = nouncut("bench", "imagenet-c/all", "imagenet-c/fog/3", *common)
    assert "2 results computed, 4 were there already" in everything.err
    assert "| ImageNet-C (mean of 2 of 75) NMI |" in header(everything.out)
    own = nouncut("bench", "imagenet-c", *common, "--shift-nouns", "own")
    assert "2 results computed, 0 were there already" in own.err


def test_domain_shift_without_imagenet_names_the_remedy(nouncut, imagenets):
    (nouncut.folder / "sketch").symlink_to(imagenets / "sketch")
    ended = nouncut("bench", "imagenet-s", "--data-root", ".", code=3)
    said = " ".join(ended.err.split())
    assert "ImageNet-1K is not in" in said
    assert "Or set --shift-nouns to own" in said


def test_two_folders_of_one_name_have_two_columns(nouncut, tiny_clip, draw, words):
    for place in ("home", "work"):
        for number, name in enumerate(("cat", "dog", "rose")):
            draw(nouncut.folder / place / "photos" / name, range(number, 60, 4))
    common = ("--model", tiny_clip, "--vocabulary", words, "--seeds", 1, "--quick-nouns")
    ended = nouncut("bench", "home/photos", "work/photos", "--methods", "clip-kmeans", *common)
    assert "| home/photos NMI |" in header(ended.out)
    assert "| work/photos NMI |" in header(ended.out)


def test_times_by_stage(nouncut, tiny_clip, pets, words):
    common = ("--model", tiny_clip, "--vocabulary", words, "--seeds", 1, "--quick-nouns")
    ended = nouncut("bench", pets, "--table", "time", *common)
    stages = "graphs (s) | diffusion (s) | eigenvectors (s) | labels (s)"
    assert header(ended.out) == f"| data set | model | images | clusters | {stages} |"
    assert "| my pets | tiny | 45 | 3 |" in ended.out
    assert "| ImageNet-1K (published, A100) | ViT-B/32 | 50,000 | 1,000 | 66 | 492 | 216 |" in (
        ended.out
    )


def test_leaks_and_single_prompts(nouncut, tiny_clip, pets, words):
    common = ("--model", tiny_clip, "--vocabulary", words, "--seeds", 1)
    leak = nouncut("bench", pets, "--table", "leak", *common)
    assert "| WordNet w/o ground-truth class name |" in leak.out
    assert "2 results computed" in leak.err
    related = nouncut("bench", pets, "--table", "leak", "--leak-words", "related", *common)
    assert "| WordNet w/o class names, plurals and synonyms |" in related.out
    assert "1 results computed, 1 were there already" in related.err
    prompts = ("bench", pets, "--table", "prompts", "--methods", "tac-kmeans-prompt-1,tac-kmeans")
    assert "2 results computed" in nouncut(*prompts, *common).err
    shared = nouncut(*prompts, "--prompt-nouns", "all", *common)
    assert "1 results computed, 1 were there already" in shared.err


def test_significance_without_data_and_with(nouncut, tiny_clip, pets, draw, words):
    published = nouncut("bench", "--table", "wilcoxon")
    assert "| SIC | 0.0039 | 0.0391 |" in published.out
    assert "| GradNorm | - | 0.4688 |" in published.out
    assert "Nothing is measured here." in published.out
    for number, name in enumerate(("cat", "dog", "rose")):
        draw(nouncut.folder / "plants" / name, range(number + 60, 120, 4))
    common = ("--model", tiny_clip, "--vocabulary", words, "--seeds", 1, "--quick-nouns")
    few = ("--methods", "ours,clip-kmeans", "--neighbors", "mutual", "--table", "wilcoxon")
    measured = nouncut("bench", pets, "plants", *few, *common)
    assert "| ours against | p, printed | p, from the paper's NMI | p, measured (tiny) |" in (
        measured.out
    )
    assert "measured of 2." in measured.out
    (row,) = read_csv(nouncut.folder / "nouncut-bench/p-values.csv")
    assert (row["title"], row["n_measured"]) == ("CLIP (KMeans)", "2")
    assert 0 < float(row["measured"]) <= 1
    assert "| my pets NMI |" in measured.out


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
        ((".", "--vocabulary", "all"), 2, "--vocabulary must be wordnet, visible or a .txt"),
        (("--table", "rad", "--methods", "clip-kmeans", "."), 2, "tac-kmeans"),
        (("--table", "wilcoxon", "--methods", "sic"), 2, "--methods needs ours and another"),
    ],
)
def test_what_is_wrong_is_said(nouncut, arguments, code, words):
    ended = nouncut("bench", *arguments, code=code)
    assert words in " ".join(ended.err.split())


def test_pickles_are_not_run(nouncut):
    folder = runpy.run_path(str(MAKERS))["make_cifar10_pickles"](nouncut.folder)
    attack = b"cposix\nsystem\n(S'touch run'\ntR."
    (folder / "test_batch").write_bytes(attack)
    ended = nouncut("bench", "cifar-10", "--data-root", ".", code=3)
    assert "test_batch is no file of CIFAR's Python version" in ended.err
    assert not (nouncut.folder / "run").exists()
