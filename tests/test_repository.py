"""What the README promises."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nouncut import __version__

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> str:
    return run_both(*arguments)[0]


def run_both(*arguments: str) -> tuple[str, str]:
    finished = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout, finished.stderr


def test_the_first_example_runs():
    output = run("examples/first_steps.py")
    accuracy = float(output.splitlines()[0].split(":")[1])
    assert accuracy > 0.98


def test_the_steps_run_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setenv("NOUNCUT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "photos with spaces, ünïcode"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(40):
        pixels = rng.integers(0, 256, (60, 80, 3), dtype=np.uint8)
        if number % 2:
            pixels[:] = (40, 90 + number, 200)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (folder / "broken.jpg").write_bytes(b"")
    output, errors = run_both("examples/step_by_step.py", str(folder), "2", "shape")
    assert "broken.jpg: the file is empty" in errors
    lines = output.splitlines()
    labels = {int(Path(path).stem): label for label, path in (line.split(" ", 1) for line in lines)}
    assert len(labels) == 40
    assert {labels[n] for n in range(0, 40, 2)} != {labels[n] for n in range(1, 40, 2)}


def test_the_core_benchmark_runs():
    result = json.loads(run("benchmarks/core.py", "--quick", "--repeats", "1", "--json"))
    solvers, fits = (rows for rows in result.values() if isinstance(rows, list))
    assert [row["images"] for row in solvers] == [400, 450]
    assert all(row["ARI of labels"] >= 0.98 for row in solvers)
    assert all(row["nouncut ACC"] > 0.9 for row in fits)


@pytest.mark.parametrize(
    "name",
    [
        f"{name}.md"
        for name in ("README", "CONTRIBUTING", "CHANGELOG", "CODE_OF_CONDUCT", "SECURITY")
    ]
    + ["THIRD-PARTY.md"],
)
def test_links_to_files_are_alive(name):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", (ROOT / name).read_text())
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_all_files_name_the_same_version():
    assert f"\n## {__version__} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_hosted_tests_cover_the_versions_of_python_that_are_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    promised = {one[-4:] for one in project["classifiers"] if one.startswith(prefix)}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    listed = re.search(r"^ +python: \[(.+)\]$", workflow, re.M)
    assert set(re.findall(r"3\.\d+", listed[1])) == promised
    assert f">={min(promised)}" == project["requires-python"]


def test_the_contributors_map_names_every_room():
    rooms = {path.parent.name for path in ROOT.glob("src/nouncut/*/__init__.py")}
    described = (ROOT / "CONTRIBUTING.md").read_text()
    assert [room for room in sorted(rooms) if f"`{room}/`" not in described] == []
