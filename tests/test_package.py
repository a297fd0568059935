"""The wheel and the source archive: what they hold, and that the installed command works."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nouncut import __version__

ROOT = Path(__file__).parents[1]
ABOUT = f"nouncut-{__version__}.dist-info"
PATIENCE = 240


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """Return the source archive, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (archive,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return archive, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """Return the programs of an environment with the wheel and the packages that are here."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=os.name != "nt")
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "-q"]
    run(*pip, "--no-deps", "--no-index", "--no-compile", built[1], cwd=folder)
    (site,) = folder.glob("**/site-packages")
    # Folders in a .pth file are searched after the environment itself, and their own .pth files are
    # not read: an editable nouncut stays out.
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "others.pth").write_text("\n".join(others), encoding="utf-8")
    return programs


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Run a program that knows nothing of the repository; return what it printed."""
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | {"HF_HUB_OFFLINE": "1", "PYTHONUTF8": "1"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
    package = {name for name in names if name.startswith("nouncut/")}
    source = ROOT / "src"
    files = [path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert package == {path.relative_to(source).as_posix() for path in files}
    assert {name.split("/")[0] for name in names} == {"nouncut", ABOUT}
    assert "nouncut/py.typed" in names


def test_the_wheel_holds_licences_and_credits(built):
    with zipfile.ZipFile(built[1]) as wheel:
        licences = [name for name in wheel.namelist() if name.startswith(f"{ABOUT}/licenses/")]
        metadata = wheel.read(f"{ABOUT}/METADATA").decode()
    endings = ("/LICENSE", "/CLIP-LICENSE.txt", "/WORDNET-LICENSE.txt", "/CREDITS.md")
    assert {ending for name in licences for ending in endings if name.endswith(ending)} == {
        *endings
    }
    assert "\nLicense-Expression: Apache-2.0\n" in metadata


def test_every_package_that_is_needed_is_listed_with_its_licence():
    listing = runpy.run_path(str(ROOT / "scripts" / "list_licences.py"))
    text = (ROOT / "THIRD-PARTY.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    licences = {row[0].strip(): row[2].strip() for row in rows}
    needed = listing["direct_requirements"]("nouncut")
    assert {"numpy", "onnxruntime", "wordllama"} <= set(needed)
    assert [name for name in needed if name not in licences] == []
    assert {"", "UNKNOWN", "not declared"}.isdisjoint(licences.values())
    # The table is what the script makes of the packages that are here.
    for name in needed:
        row = listing["table"]([name]).splitlines()[-1]
        assert row.split("|")[1].strip() == name
        assert row.split("|")[3].strip() not in {"", "UNKNOWN", "not declared"}


def test_the_source_archive_holds_what_is_needed_to_test_it(built):
    with tarfile.open(built[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"pyproject.toml", "README.md", "LICENSE", "tests/conftest.py"} <= names
    assert {"examples/first_steps.py", "scripts/build_demo.py", "CHANGELOG.md"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/"))]


def test_the_installed_command_works_without_the_repository(installed, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    rng = np.random.default_rng(0)
    for number in range(12):
        pixels = rng.integers(0, 60, (40, 40, 3), dtype=np.uint8)
        pixels[..., number % 2] += 150
        Image.fromarray(pixels).save(photos / f"{number:02}.png")
    (tmp_path / "words.txt").write_text("red\ngreen\nwall\nrose\ngrass\n")
    options = {"cwd": tmp_path, "NOUNCUT_CACHE": str(tmp_path / "cache")}
    nouncut = installed / "nouncut"
    assert run(nouncut, "--version", **options).startswith(f"nouncut {__version__}\n")
    cluster = ("cluster", "photos", "-k", "2", "--model", "mini", "--vocabulary", "words.txt")
    assert "12 images in 2 groups" in run(nouncut, *cluster, "-o", "run", **options)
    (tmp_path / "run" / "report.html").unlink()
    run(nouncut, "report", "run", **options)
    assert "<html" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    code = (
        "import nouncut; run = nouncut.open_run('run')\n"
        "print(nouncut.__file__, *run.labels, sep='\\n')"
    )
    origin, *labels = run(installed / "python", "-c", code, **options).split()
    assert Path(origin).is_relative_to(installed.parent)
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1
    assert labels[0] != labels[1]
