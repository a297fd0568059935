"""What can be done with a finished run: predict, export, report."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.run import open_run

N_IMAGES = 24


@pytest.fixture
def rows(finished):
    return open_run(finished).assignments.to_pylist()


def test_predict_puts_known_images_where_they_are_and_new_ones_beside(
    nouncut, finished, rows, draw, tmp_path
):
    known = nouncut("predict", finished, finished.parent / "photos", "--json").json
    assert [one["path"] for one in known["images"]] == [row["path"] for row in rows]
    same = [
        one["cluster"] == row["cluster"] for one, row in zip(known["images"], rows, strict=True)
    ]
    # The clusters of a random model touch, so that some images lie between them.
    assert np.mean(same) >= 0.7
    draw(tmp_path / "new", range(100, 108))
    (tmp_path / "new" / "empty.jpg").touch()
    before = {path: path.stat().st_mtime_ns for path in finished.iterdir()}
    ended = nouncut("predict", os.path.relpath(finished, tmp_path), "new")
    assert "empty.jpg: the file is empty" in ended.err
    assert all(f"{number}.png" in ended.out for number in range(100, 108))
    assert "8 images;" in ended.out
    assert {path: path.stat().st_mtime_ns for path in finished.iterdir()} == before


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_csv(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def read_parquet(path):
    return pq.read_table(path).to_pylist()


READERS = {"csv": read_csv, "jsonl": read_jsonl, "parquet": read_parquet}


@pytest.mark.parametrize("suffix", READERS)
def test_predictions_as_a_table(nouncut, finished, tmp_path, suffix):
    place = tmp_path / f"found.{suffix}"
    ended = nouncut("predict", finished, finished.parent / "photos", "-o", place)
    assert f"Table: {place}" in ended.out
    found = READERS[suffix](place)
    assert len(found) == N_IMAGES
    assert {"path", "cluster", "name", "confidence", "unseen"} <= set(found[0])


def test_a_table_of_another_kind_is_refused_before_anything_is_encoded(nouncut, finished):
    ended = nouncut("predict", finished, "nowhere", "-o", "found.xlsx", code=5)
    assert ".xlsx" in ended.err or "found.xlsx" in ended.err


def test_images_of_an_unseen_kind_are_flagged(nouncut, tmp_path):
    data = make_clip_like(n_images=120, n_clusters=4, random_state=0)
    known, other = data.labels < 3, data.labels == 3
    np.save(tmp_path / "known.npy", data.features[known])
    np.save(tmp_path / "new.npy", np.r_[data.features[known][:10], data.features[other][:10]])
    nouncut("cluster", "known.npy", "-k", 3, "-o", "run")
    found = nouncut("predict", "run", "new.npy", "--json").json["images"]
    unseen = [one["unseen"] for one in found]
    assert sum(unseen[:10]) <= 1
    assert sum(unseen[10:]) >= 7
    assert "of a kind that the run has not seen" in nouncut("predict", "run", "new.npy").out


def test_predict_in_another_folder_finds_the_model_again(nouncut, tiny_clip, words, draw, tmp_path):
    draw(tmp_path / "photos", range(8))
    name = os.path.relpath(tiny_clip, tmp_path)
    nouncut("cluster", "photos", "-k", 2, "--model", name, "--vocabulary", words, "-o", "run")
    (tmp_path / "elsewhere").mkdir()
    found = nouncut("predict", "../run", "../photos", "--json", cwd=tmp_path / "elsewhere")
    assert len(found.json["images"]) == 8


@pytest.mark.parametrize("form", READERS)
def test_exported_tables(nouncut, finished, rows, tmp_path, form):
    place = tmp_path / f"table.{form}"
    ended = nouncut("export", finished, "--to", form, "-o", place)
    assert f"{N_IMAGES} written: {place}" in ended.out
    found = READERS[form](place)
    assert [one["path"] for one in found] == [row["path"] for row in rows]
    assert [str(one["cluster"]) for one in found] == [str(row["cluster"]) for row in rows]
    assert "exists" in nouncut("export", finished, "--to", form, "-o", place, code=5).err
    nouncut("export", finished, "--to", form, "-o", place, "--overwrite")


def test_a_tree_of_links_after_a_preview(nouncut, finished, rows, tmp_path):
    place = tmp_path / "tree"
    preview = nouncut("export", finished, "--to", "tree", "-o", place, "--dry-run")
    assert f"{N_IMAGES} files would be written: {place}. Nothing was done." in preview.out
    assert not place.exists()
    nouncut("export", finished, "--to", "tree", "-o", place)
    links = [path for path in place.rglob("*") if path.is_symlink()]
    assert sorted(os.path.realpath(link) for link in links) == sorted(row["path"] for row in rows)
    shown = preview.out.splitlines()[:5]
    assert set(shown) < {str(link) for link in links}
    assert {link.parent.name for link in links} >= set(open_run(finished).names)
    assert (
        f"{N_IMAGES} were there already"
        in nouncut("export", finished, "--to", "tree", "-o", place).out
    )


@pytest.mark.parametrize("link", ["hardlink", "copy"])
def test_a_tree_of_files(nouncut, finished, rows, tmp_path, link):
    nouncut("export", finished, "--to", "tree", "-o", tmp_path / "tree", "--link", link)
    files = list((tmp_path / "tree").rglob("*.png"))
    assert len(files) == N_IMAGES
    originals = {os.stat(row["path"]).st_ino for row in rows}
    assert ({path.stat().st_ino for path in files} == originals) == (link == "hardlink")
    assert {path.read_bytes() for path in files} == {Path(row["path"]).read_bytes() for row in rows}


def test_fiftyone_embedding_atlas_and_sidecars(nouncut, finished, rows, tmp_path):
    nouncut("export", finished, "--to", "fiftyone", "-o", tmp_path / "fiftyone")
    samples = json.loads((tmp_path / "fiftyone" / "samples.json").read_text())["samples"]
    assert {sample["nouncut"]["label"] for sample in samples} == set(open_run(finished).names)
    assert len(samples) == N_IMAGES

    ended = nouncut("export", finished, "--to", "embedding-atlas", "-o", tmp_path / "atlas.parquet")
    assert "embedding-atlas" in ended.out
    table = pq.read_table(tmp_path / "atlas.parquet")
    assert table.num_rows == N_IMAGES
    assert {"name", "cluster"} <= set(table.column_names)

    nouncut("export", finished, "--to", "xmp", "-o", tmp_path / "xmp")
    sidecars = list((tmp_path / "xmp").rglob("*.xmp"))
    assert len(sidecars) == N_IMAGES
    assert any(rows[0]["name"] in path.read_text(encoding="utf-8") for path in sidecars)


def test_an_album(nouncut, finished, tmp_path):
    ended = nouncut(
        "export", finished, "--to", "album", "-o", "album", "--title", "Trip", "--without-names"
    )
    assert f"{N_IMAGES} written: album" in ended.out
    assert "Open album/index.html" in ended.out
    assert '<h1 dir="auto">Trip</h1>' in (tmp_path / "album" / "index.html").read_text()
    pages = [path.read_text() for path in (tmp_path / "album" / "groups").iterdir()]
    assert len(pages) == len(open_run(finished).names)
    assert all('alt="Picture 1"' in page for page in pages)
    stems = [path.stem for path in open_run(finished).paths()]
    assert not any(f'alt="{stem}"' in page for stem in stems for page in pages)


def test_sidecars_for_lightroom(nouncut, finished, rows, tmp_path):
    ended = nouncut("export", finished, "--to", "xmp", "-o", "xmp", "--for", "lightroom")
    assert f"{N_IMAGES} of {N_IMAGES} images are none" in ended.out.replace("\n", " ")
    found = {path.stem for path in (tmp_path / "xmp").rglob("*.xmp")}
    assert found == {Path(row["path"]).stem for row in rows}
    ended = nouncut("export", finished, "--to", "csv", "--for", "digikam", code=2)
    assert "has no option --for" in ended.err


def test_some_groups_by_number_and_name(nouncut, finished, rows, tmp_path):
    run = open_run(finished)
    name = run.names_by_cluster[1]
    place = tmp_path / "some.csv"
    nouncut("export", finished, "-o", place, "--group", "0", "--group", name)
    wanted = [row["path"] for row in rows if int(row["cluster"]) in (0, 1)]
    assert 0 < len(wanted) < N_IMAGES
    assert [row["path"] for row in read_csv(place)] == wanted
    ended = nouncut("export", finished, "-o", tmp_path / "b.csv", "--group", "nothing", code=3)
    assert 'There is no group "nothing"' in ended.err


def test_the_default_places_are_in_the_run(nouncut, tiny_clip, words, draw, tmp_path):
    draw(tmp_path / "photos", range(6))
    nouncut("cluster", "photos", "-k", 2, "--model", tiny_clip, "--vocabulary", words, "-o", "run")
    nouncut("export", "run")
    nouncut("export", "run", "--to", "tree")
    assert (tmp_path / "run" / "exports" / "assignments.csv").is_file()
    assert (tmp_path / "run" / "exports" / "tree").is_dir()
    page = tmp_path / "run" / "report.html"
    page.unlink()
    assert f"Report: {'run/report.html'}" in nouncut("report", "run").out
    assert page.stat().st_size > 1000
    assert nouncut("report", "run", "--quiet").out == ""


def test_edited_names_and_saved_figures(nouncut, finished, tmp_path):
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    names = tmp_path / "names.json"
    names.write_text('{"format": 1, "names": {"0": "\'my <b>cats</b>\'"}}')
    ended = nouncut("report", "run", "--names", "names.json", "--figures", "figures")
    saved = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert {Path(name).suffix for name in saved} == {".svg", ".png"}
    assert all(f"Figure: figures/{name}" in ended.out for name in saved)
    assert "<b>cats" not in (run / "report.html").read_text(encoding="utf-8")
    nouncut("export", "run", "-o", "named.csv")
    assert "'my <b>cats</b>'" in {row["name"] for row in read_csv(tmp_path / "named.csv")}

    names.write_text('{"format": 1, "names": {"77": "nobody"}}')
    assert "names.json" in nouncut("report", "run", "--names", "names.json", code=3).err


@pytest.mark.parametrize(
    "command", [("predict", "nowhere", "."), ("export", "nowhere"), ("report", "nowhere")]
)
def test_what_is_no_run_is_named(nouncut, command):
    ended = nouncut(*command, code=3)
    assert "nowhere is not a run" in ended.err


def test_options_of_another_export_are_refused(nouncut, finished):
    ended = nouncut("export", finished, "--to", "csv", "--link", "copy", code=2)
    assert "link" in ended.err


def test_why_an_image_is_in_its_group(nouncut, finished):
    run = open_run(finished)
    path = run.paths()[5]
    said = nouncut("explain", finished, path).out
    assert said.splitlines()[0] == str(path)
    assert f'"{run.names[run.labels[5]]}"' in said
    assert "The second choice is" in said
    found = nouncut("explain", finished, path.name, "--json").json
    assert (found["row"], found["chosen"]["cluster"]) == (5, run.labels[5])
    nearest = found["chosen"]["nearest"]
    assert {run.labels[image["row"]] for image in nearest} == {run.labels[5]}
    assert nearest[0]["path"] in said
    err = nouncut("explain", finished, "5.jpg", code=3).err
    assert "5.jpg is not an image of this run. Did you mean" in err


def test_names_that_were_given_survive_a_photo_more(nouncut, draw, tiny_clip, words, tmp_path):
    draw(tmp_path / "photos", range(24))
    command = ("cluster", "photos", "-k", 4, "--vocabulary", words, "--model", tiny_clip)
    nouncut(*command)
    (run,) = (tmp_path / "nouncut-runs").iterdir()
    names = tmp_path / "names.json"
    names.write_text('{"format": 1, "names": {"0": "Garden", "2": "Lake"}}')
    nouncut("report", run, "--names", names)
    draw(tmp_path / "photos", range(24, 25))
    again = nouncut(*command)
    assert "4 groups match those of the run before; 2 names that you gave were kept." in again.err
    assert "Garden" in again.out
    assert "Lake" in (run / "report.html").read_text()
    assert {"Garden", "Lake"} <= set(open_run(run).names)


def test_check_says_which_files_are_damaged_and_clustering_again_mends_them(nouncut, tmp_path):
    np.save(tmp_path / "clip.npy", make_clip_like(60, 3, random_state=0).features)
    nouncut("cluster", "clip.npy", "-k", 3, "-o", "run")
    assert "nothing is damaged in run" in nouncut("check", "run").out
    path = tmp_path / "run" / "arrays" / "features.npy"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    assert "features.npy is missing or damaged" in nouncut("check", "run", code=3).out
    assert len(nouncut("check", "run", "--json", code=3).json["problems"]) == 1
    assert "features.npy" in nouncut("predict", "run", "clip.npy", code=3).err
    nouncut("cluster", "clip.npy", "-k", 3, "-o", "run")
    assert nouncut("check", "run", "--json").json["problems"] == []
    assert "no manifest.json" in nouncut("check", "nowhere", code=3).err
