"""A run with nothing new imports and reads only what it needs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nouncut.paper.synthetic import make_clip_like

IMPORT = re.compile(r"import time:.*\| +([\w.]+)$")
# What only a new run, a report or a model needs.
HEAVY = {
    "jinja2",
    "joblib",
    "llvmlite",
    "onnxruntime",
    "pyarrow.compute",
    "pyarrow.dataset",
    "rich.progress",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "tokenizers",
    "torch",
    "transformers",
}


@pytest.fixture
def imported_by(nouncut):
    """Return a function that runs the command from nothing and returns what it imported."""

    def run(*arguments):
        ended = nouncut(*arguments, cold=True, env={"PYTHONPROFILEIMPORTTIME": "1"})
        found = {match[1] for line in ended.err.splitlines() if (match := IMPORT.match(line))}
        assert "nouncut.cli.app" in found
        return found, ended

    return run


def test_a_second_run_of_features_imports_little(imported_by, nouncut, tmp_path):
    np.save(tmp_path / "clip.npy", make_clip_like(60, 3, random_state=0).features)
    nouncut("cluster", "clip.npy", "-k", 3)
    found, ended = imported_by("cluster", "clip.npy", "-k", 3)
    assert not found & HEAVY
    assert "60 images in 3 groups" in ended.out
    assert "Nothing is new" in ended.err


def test_a_second_run_of_images_loads_no_model(imported_by, nouncut, draw, words, tmp_path):
    draw(tmp_path / "photos", range(8))
    command = ("cluster", "photos", "--model", "mini", "-k", 2, "--vocabulary", words)
    nouncut(*command)
    found, ended = imported_by(*command)
    # Files that have just been written are read again, in threads.
    assert not found & HEAVY - {"joblib", "threadpoolctl"}
    assert "8 images in 2 groups" in ended.out


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_no_arrays(imported_by, option):
    found, _ = imported_by(option)
    assert not found & (HEAVY | {"numpy", "PIL", "pyarrow", "sqlite3"})
