from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from nouncut.errors import OutputError, ParameterError
from nouncut.exports.part import part_of
from nouncut.exports.tree import export_tree, plan_tree
from nouncut.runs.run import open_run

LINKS = ["symlink", "hardlink", "copy"]
JPEG = b"\xff\xd8\xff"
LIST = ".nouncut-tree.json"


def files_of(folder: Path) -> dict[Path, tuple]:
    """Return every file, whether it is a link, its content and its times."""
    return {
        path: (path.is_symlink(), path.read_bytes(), os.lstat(path).st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.name != LIST
    }


@pytest.fixture
def images(tmp_path):
    """Return two images of the same name and another one."""
    paths = [tmp_path / "photos" / name for name in ("2025/x.jpg", "2026/X.JPG", "2026/y.jpg")]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(JPEG + b"image %d" % number)
    return paths


@pytest.mark.parametrize("link", LINKS)
def test_every_image_is_in_the_folder_of_its_cluster(small_run, tmp_path, link):
    photos = files_of(tmp_path / "photos")
    result = export_tree(part_of(small_run), tmp_path / "tree", link=link)
    plan = plan_tree(small_run, tmp_path / "tree")
    assert (result.n_written, result.n_kept, result.problems) == (len(plan), 0, [])
    assert [place.source for place in plan] == small_run.paths()
    assert {place.target for place in plan} == set(files_of(tmp_path / "tree"))
    for place, label in zip(plan, small_run.labels, strict=True):
        source, target = place.source, place.target
        assert target.parent == plan[int(small_run.labels.tolist().index(label))].target.parent
        assert target.is_symlink() == (link == "symlink")
        assert os.path.samefile(source, target) == (link != "copy")
        assert target.read_bytes() == source.read_bytes()
    assert len({place.target.parent for place in plan}) == len(small_run.names)
    assert files_of(tmp_path / "photos") == photos


@pytest.mark.parametrize("link", LINKS)
def test_again_adds_what_is_missing_and_changes_nothing_else(small_run, tmp_path, link):
    export_tree(part_of(small_run), tmp_path / "tree", link=link)
    before = files_of(tmp_path / "tree")
    first = sorted(before)[0]
    first.unlink()
    (first.parent / "note.txt").write_text("mine")
    result = export_tree(part_of(small_run), tmp_path / "tree", link=link)
    assert (result.n_written, result.n_kept, result.problems) == (1, len(before) - 1, [])
    after = files_of(tmp_path / "tree")
    assert after.pop(first.parent / "note.txt")[1] == b"mine"
    assert after.keys() == before.keys()
    assert all(after[path] == before[path] for path in before if path != first)


@pytest.mark.parametrize("link", LINKS)
def test_other_files_and_missing_images_are_told(write_run, images, tmp_path, link):
    run = write_run(images, [0, 0, 1], ["cat", "dog"])
    (tmp_path / "tree" / "cat").mkdir(parents=True)
    (tmp_path / "tree" / "cat" / "x.jpg").write_text("another")
    images[2].unlink()
    result = export_tree(part_of(run), tmp_path / "tree", link=link)
    assert (result.n_written, result.n_kept) == (1, 0)
    assert result.problems == [
        f"{tmp_path / 'tree' / 'cat' / 'x.jpg'}: kept, since it is another file",
        f"{images[2]}: the image no longer exists",
    ]
    assert (tmp_path / "tree" / "cat" / "x.jpg").read_text() == "another"
    assert (tmp_path / "tree" / "cat" / "X (2).JPG").read_bytes() == JPEG + b"image 1"


def test_a_link_to_nowhere_is_not_replaced(write_run, images, tmp_path):
    (tmp_path / "tree" / "cat").mkdir(parents=True)
    (tmp_path / "tree" / "cat" / "x.jpg").symlink_to(tmp_path / "nowhere")
    result = export_tree(
        part_of(write_run(images[:1], [0], ["cat"])), tmp_path / "tree", link="copy"
    )
    assert result.n_written == 0
    assert "another file" in result.problems[0]
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["..", "../outside", "/outside", "a/../../outside", "\0", ""])
def test_nothing_is_written_outside(write_run, images, tmp_path, name):
    destination = tmp_path / "a" / "b" / "tree"
    result = export_tree(part_of(write_run(images, [0, 0, 0], [name])), destination)
    assert result.n_written == 3
    (folder,) = (path for path in destination.iterdir() if path.name != LIST)
    assert folder.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "photos"]
    assert list((tmp_path / "a").iterdir()) == [tmp_path / "a" / "b"]
    assert list((tmp_path / "a" / "b").iterdir()) == [destination]


def test_a_folder_that_is_a_link_is_not_followed(write_run, images, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "cat").symlink_to(outside)
    result = export_tree(part_of(write_run(images, [0, 0, 1], ["cat", "dog"])), tmp_path / "tree")
    assert (result.n_written, len(result.problems)) == (1, 2)
    assert "is a link or a file" in result.problems[0]
    assert list(outside.iterdir()) == []


def test_folders_of_clusters_with_the_same_name(write_run, images, tmp_path):
    plan = plan_tree(write_run(images, [0, 1, 2], ["Crane", "crane", "cra\nne"]), tmp_path)
    assert [place.target.parent.name for place in plan] == ["Crane", "crane (2)", "cra_ne"]


def test_outliers_stay_in_their_cluster(small_run, tmp_path):
    row = small_run.assignments["outlier"].to_pylist().index(True)
    plan = plan_tree(small_run, tmp_path)
    cluster = small_run.labels[row]
    peers = {plan[i].target.parent for i in range(len(plan)) if small_run.labels[i] == cluster}
    assert peers == {plan[row].target.parent}


def test_space_is_looked_for_before_the_first_copy(small_run, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 100))
    with pytest.raises(OutputError, match="GB left"):
        export_tree(part_of(small_run), tmp_path / "new" / "tree", link="copy")
    assert not (tmp_path / "new").exists()
    assert export_tree(part_of(small_run), tmp_path / "tree").n_written == len(small_run.labels)


@pytest.mark.parametrize(("link", "call"), [("symlink", "symlink"), ("hardlink", "link")])
def test_a_drive_without_links_is_explained(small_run, tmp_path, monkeypatch, link, call):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(OutputError, match=f"No {link} can be made.*Set `link` to .* or copy"):
        export_tree(part_of(small_run), tmp_path / "tree", link=link)


def test_a_kind_of_link_that_there_is_not(small_run, tmp_path):
    with pytest.raises(ParameterError, match="symlink, hardlink, copy"):
        export_tree(part_of(small_run), tmp_path / "tree", link="move")


def test_the_plan_writes_nothing(small_run, tmp_path):
    plan_tree(small_run, tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_a_broken_copy_is_never_left_under_its_name(write_run, images, tmp_path, monkeypatch):
    def half(source, target, **_):
        Path(target).write_bytes(Path(source).read_bytes()[:3])
        raise OSError(5, "Input/output error")

    run = write_run(images[:1], [0], ["cat"])
    with monkeypatch.context() as context:
        context.setattr(shutil, "copyfile", half)
        result = export_tree(part_of(run), tmp_path / "tree", link="copy")
    assert result.problems == [f"{images[0]}: Input/output error"]
    assert list((tmp_path / "tree" / "cat").iterdir()) == []
    assert export_tree(part_of(run), tmp_path / "tree", link="copy").n_written == 1


@pytest.mark.parametrize("link", LINKS)
def test_files_that_are_no_images_of_the_run_are_refused(write_run, images, seal, tmp_path, link):
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0")
    run = write_run([secret, *images], [0, 0, 0, 0], ["cat"])
    result = export_tree(part_of(run), tmp_path / "tree", link=link)
    assert result.n_written == 3
    assert result.problems == [f"{secret}: not an image in a known format"]
    assert not (tmp_path / "tree" / "cat" / "secret").exists()
    seal(run.directory, source=[str(tmp_path / "photos" / "2025")])
    result = export_tree(part_of(open_run(run.directory)), tmp_path / "narrow", link=link)
    assert result.n_written == 1
    assert "not in the folders that the run was made from" in result.problems[0]


def test_only_the_recorded_content_is_copied(write_run, images, tmp_path):
    run = write_run(images, [0, 0, 0], ["cat"])
    images[1].write_bytes(JPEG + b"another image")
    result = export_tree(part_of(run), tmp_path / "tree", link="copy")
    assert result.n_written == 2
    assert result.problems == [f"{images[1]}: refused, since the file has changed since the run"]
    assert len(files_of(tmp_path / "tree")) == 2


@pytest.mark.parametrize(
    ("source", "is_inside"),
    [
        ("photos", True),
        ("photos/", True),
        ("photos/2025", False),
        ("photo", False),
        ("photos/2026/y.jpg", True),
        ("photos/**/*.jpg", True),
        ("photos/2025/../2026", True),
        ("list.txt", True),
    ],
)
def test_sources_are_folders_files_patterns_and_lists(
    write_run, images, seal, tmp_path, source, is_inside
):
    run = write_run(images[2:], [0], ["cat"])
    seal(run.directory, source=[os.path.join(tmp_path, source)])
    result = export_tree(part_of(open_run(run.directory)), tmp_path / "tree", link="copy")
    assert result.n_written == is_inside


def test_folders_of_groups_lie_within_those_of_the_groups_above(make_run, tmp_path):
    levels = {"sizes": [12, 8, 4], "levels": [[0, 1, 0]]}
    run = make_run(tmp_path / "run", manifest={"tree": levels})
    result = export_tree(part_of(run), tmp_path / "tree", nested=True)
    plan = plan_tree(run, tmp_path / "tree", nested=True)
    assert (result.n_written, result.problems) == (len(plan), [])
    assert {place.target for place in plan} == set(files_of(tmp_path / "tree"))
    folders = [
        {p.target.parent for p, label in zip(plan, run.labels, strict=True) if label == c}
        for c in range(3)
    ]
    (first,), (second,), (third,) = folders
    assert first.parent == third.parent != tmp_path / "tree"
    assert first.parent.parent == second.parent == tmp_path / "tree"
    assert len({first, second, third}) == 3
