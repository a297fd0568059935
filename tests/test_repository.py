"""What the README promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_first_example_runs():
    output = run("examples/first_steps.py")
    accuracy = float(output.splitlines()[0].split(":")[1])
    assert accuracy > 0.98


def test_the_core_benchmark_runs():
    result = json.loads(run("benchmarks/core.py", "--quick", "--repeats", "1", "--json"))
    solvers, fits = (rows for rows in result.values() if isinstance(rows, list))
    assert [row["images"] for row in solvers] == [500, 1000]
    assert all(row["ARI of labels"] >= 0.98 for row in solvers)
    assert all(row["nouncut ACC"] > 0.9 for row in fits)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_are_alive(name):
    import re

    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / name).read_text())
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_contributors_map_names_every_room():
    rooms = {path.parent.name for path in ROOT.glob("src/nouncut/*/__init__.py")}
    described = (ROOT / "CONTRIBUTING.md").read_text()
    assert [room for room in sorted(rooms) if f"`{room}/`" not in described] == []
