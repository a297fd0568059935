"""A tree that is exported again, after edits of groups and after others put files into it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nouncut.errors import InputError
from nouncut.exports.registry import export_run
from nouncut.runs.run import Run, open_run

LIST = ".nouncut-tree.json"
LINKS = ["symlink", "hardlink", "copy"]
N_IMAGES = 6


@pytest.fixture
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    paths = [folder / str(number % 2) / f"{number // 2}.jpg" for number in range(N_IMAGES)]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\xff\xd8\xffimage %d" % number)
    return paths


@pytest.fixture
def run(write_run, photos):
    return write_run(photos, [0, 0, 1, 1, 2, 2], ["cat", "Cat", "dog"])


def snapshot(root: Path) -> dict[str, object]:
    """Return every file and folder below a root: links by their target, others by content."""
    found: dict[str, object] = {}
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(folder, name)
            inside = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[inside] = ("symlink", os.readlink(path))
            elif path.is_dir():
                found[inside] = "folder"
            elif name != LIST:
                kind = "hardlink" if path.stat().st_nlink > 1 else "copy"
                found[inside] = (kind, path.read_bytes())
    return found


def with_parents(found: dict[str, object]) -> dict[str, object]:
    parents = {str(parent) for name in found for parent in list(Path(name).parents)[:-1]}
    return dict.fromkeys(parents, "folder") | found


NUMBERS = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(st.just("merge"), NUMBERS, NUMBERS),
    st.tuples(st.just("rename"), NUMBERS, st.sampled_from(["pet", "CAT (2)", "a/b", "dog"])),
    st.tuples(st.just("move"), st.integers(0, N_IMAGES - 1), st.sampled_from([0, 1, 2, "new"])),
    st.tuples(st.just("set_aside"), st.integers(0, N_IMAGES - 1), st.none()),
    st.tuples(st.just("undo"), st.none(), st.none()),
    st.tuples(st.just("export"), st.sampled_from(LINKS), st.one_of(st.none(), NUMBERS)),
    st.tuples(st.just("put"), st.integers(0, 9), st.sampled_from(["note.txt", "x/y.txt"])),
    st.tuples(st.just("replace"), st.integers(0, 9), st.none()),
)


def do(run: Run, step: tuple, tree: Path, mine: dict[str, object]) -> None:
    verb, first, second = step
    try:
        if verb == "merge":
            run.merge([first, second])
        elif verb in ("rename", "move"):
            getattr(run, verb)(first, second)
        elif verb == "set_aside":
            run.set_aside(first)
        elif verb == "undo":
            run.undo()
        elif verb == "export":
            export_run(run, "tree", tree, link=first, groups=None if second is None else [second])
        else:
            change(tree, verb, first, second, mine)
    except InputError:
        pass  # there is no such group, or nothing to undo


def change(tree: Path, verb: str, number: int, name: str | None, mine: dict[str, object]) -> None:
    """Put a file into a folder of the tree, or replace one of ours by another."""
    kind = "folder" if verb == "put" else ""
    places = [
        path for path, what in sorted(snapshot(tree).items()) if (what == "folder") == bool(kind)
    ]
    if not places:
        return
    path = places[number % len(places)]
    path = f"{path}/{name}" if name else path
    target = tree / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.write_text("mine")
    mine[path] = ("copy", b"mine")


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.lists(STEPS, max_size=8), st.sampled_from(LINKS))
def test_any_edits_and_exports_end_in_the_tree_of_a_first_export(
    write_run, photos, tmp_path_factory, steps, link
):
    run = write_run(photos, [0, 0, 1, 1, 2, 2], ["cat", "Cat", "dog"])
    folder = tmp_path_factory.mktemp("trees")
    mine: dict[str, object] = {}
    for step in steps:
        do(run, step, folder / "tree", mine)
    originals = snapshot(photos[0].parent.parent)
    preview = export_run(run, "tree", folder / "tree", link=link, preview=True)
    before = set(snapshot(folder / "tree"))
    result = export_run(run, "tree", folder / "tree", link=link)
    export_run(run, "tree", folder / "fresh", link=link)
    found = snapshot(folder / "tree")
    assert found == with_parents(snapshot(folder / "fresh") | mine)
    assert (preview.n_written, preview.n_removed) == (result.n_written, result.n_removed)
    new = {(folder / "tree" / name) for name in found.keys() - before if found[name] != "folder"}
    assert new <= set(preview.files)
    again = export_run(run, "tree", folder / "tree", link=link)
    assert (again.n_written, again.n_removed) == (0, 0)
    assert snapshot(photos[0].parent.parent).keys() == originals.keys()
    assert [path.read_bytes()[3:] for path in photos] == [b"image %d" % n for n in range(N_IMAGES)]
    shutil.rmtree(folder)


@pytest.mark.parametrize("link", LINKS)
def test_old_folders_and_files_go_and_other_files_are_named(run, tmp_path, link):
    tree = tmp_path / "tree"
    export_run(run, "tree", tree, link=link)
    (tree / "Cat (2)" / "note.txt").write_text("mine")
    changed = tree / "dog" / "2.jpg"
    changed.unlink()
    changed.write_bytes(b"edited")
    run.merge([0, 1])
    run.rename(2, "hound")
    result = export_run(run, "tree", tree, link=link)
    assert sorted(path.name for path in tree.iterdir()) == [LIST, "Cat (2)", "cat", "dog", "hound"]
    assert list((tree / "Cat (2)").iterdir()) == [tree / "Cat (2)" / "note.txt"]
    assert list((tree / "dog").iterdir()) == [changed]
    assert result.n_removed == 3
    assert set(result.problems) == {
        f"{changed}: kept, since it was changed or its image is gone",
        f"{tree / 'Cat (2)'}: kept, since other files are in it",
        f"{tree / 'dog'}: kept, since other files are in it",
    }


@pytest.mark.parametrize("link", ["hardlink", "copy"])
def test_the_last_copy_of_a_photo_is_never_removed(run, photos, tmp_path, link):
    export_run(run, "tree", tmp_path / "tree", link=link)
    photos[4].unlink()
    run.rename(2, "hound")
    result = export_run(run, "tree", tmp_path / "tree", link=link)
    kept = tmp_path / "tree" / "dog" / "2.jpg"
    assert kept.read_bytes() == b"\xff\xd8\xffimage 4"
    assert f"{kept}: kept, since it was changed or its image is gone" in result.problems


def test_links_to_photos_that_are_gone_are_removed(run, photos, tmp_path):
    export_run(run, "tree", tmp_path / "tree")
    photos[4].unlink()
    run.rename(2, "hound")
    export_run(run, "tree", tmp_path / "tree")
    assert not (tmp_path / "tree" / "dog").exists()


def test_a_part_keeps_other_groups_that_are_still_right(run, tmp_path):
    tree = tmp_path / "tree"
    export_run(run, "tree", tree, groups=["dog"])
    export_run(run, "tree", tree, groups=[0])
    assert {path.name for path in tree.iterdir()} == {LIST, "dog", "cat"}
    run.rename(2, "hound")
    export_run(run, "tree", tree, groups=[0])
    assert {path.name for path in tree.iterdir()} == {LIST, "cat"}


def test_folders_of_others_and_of_other_runs_stay(run, write_run, tmp_path):
    tree = tmp_path / "tree"
    (tree / "dog").mkdir(parents=True)
    (tree / "empty").mkdir()
    other = tmp_path / "other.jpg"
    other.write_bytes(b"\xff\xd8\xffother")
    export_run(write_run([other], [0], ["bird"]), "tree", tree)
    export_run(run, "tree", tree)
    run.rename(2, "hound")
    export_run(run, "tree", tree)
    names = {path.name for path in tree.iterdir()}
    assert names == {LIST, "dog", "empty", "bird", "cat", "Cat (2)", "hound"}
    other.unlink()
    export_run(run, "tree", tree)
    assert not (tree / "bird").exists()


def test_nested_folders_that_are_no_longer_needed(make_run, tmp_path):
    levels = {"sizes": [12, 8, 4], "levels": [[0, 1, 0]]}
    run = make_run(tmp_path / "run", manifest={"tree": levels})
    tree = tmp_path / "tree"
    for nested in (True, False, True):
        export_run(run, "tree", tree, nested=nested)
        export_run(run, "tree", tmp_path / f"fresh {nested}", nested=nested)
        assert snapshot(tree) == snapshot(tmp_path / f"fresh {nested}")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[1",
        b"[]",
        b'{"format": 2, "files": {}, "folders": []}',
        b'{"format": 1, "files": [], "folders": []}',
        b'{"format": 1, "files": {"a": 3}, "folders": []}',
        b'{"format": 1, "files": {}, "folders": [3]}',
        b'{"format": 1, "files": {}, "folders": ["../outside"]}',
        b"[" * 100_000,
        *(
            json.dumps(
                {
                    "format": 1,
                    "files": {name: {"kind": kind, "source": "/x", "content": None}},
                    "folders": [],
                }
            ).encode()
            for name, kind in [
                ("../outside/secret", "symlink"),
                ("/etc/passwd", "symlink"),
                ("a/../../outside/secret", "symlink"),
                ("./a", "symlink"),
                (".", "symlink"),
                ("", "symlink"),
                ("a\0b", "symlink"),
                ("a", "other"),
            ]
        ),
    ],
)
def test_a_list_that_is_damaged_or_forged_removes_nothing(run, tmp_path, content):
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    tree.mkdir()
    outside.mkdir()
    (outside / "secret").symlink_to("/x")
    (tree / LIST).write_bytes(content)
    result = export_run(run, "tree", tree)
    assert len(result.problems) == 1
    assert "it is damaged, so files of earlier exports stay" in result.problems[0]
    assert os.path.lexists(outside / "secret")
    assert export_run(run, "tree", tree).problems == []


def test_nothing_is_removed_through_a_link(run, photos, tmp_path):
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    export_run(run, "tree", tree)
    outside.mkdir()
    (outside / "2.jpg").symlink_to(photos[4])
    shutil.rmtree(tree / "dog")
    (tree / "dog").symlink_to(outside)
    run.rename(2, "hound")
    export_run(run, "tree", tree)
    assert (outside / "2.jpg").is_symlink()
    assert (tree / "dog").is_symlink()


@pytest.mark.parametrize("kind", ["hardlink", "copy"])
def test_a_list_cannot_make_an_original_pass_for_a_copy_of_itself(run, photos, tmp_path, kind):
    tree = photos[0].parent.parent
    name = "0/0.jpg"
    content = run.images["hash"][0].as_py()
    made = {"kind": kind, "source": str(photos[0]), "content": content}
    (tree / LIST).write_text(json.dumps({"format": 1, "files": {name: made}, "folders": []}))
    export_run(run, "tree", tree)
    assert photos[0].is_file()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_list_that_is_no_ordinary_file_is_not_read(run, tmp_path, make):
    (tmp_path / "tree").mkdir()
    make(tmp_path / "tree" / LIST)
    preview = export_run(run, "tree", tmp_path / "tree", preview=True)
    assert "files of earlier exports stay" in preview.problems[0]


def test_an_export_that_was_interrupted_knows_its_files(run, tmp_path, monkeypatch):
    tree = tmp_path / "tree"
    symlink = os.symlink
    made = []

    def stop_at_the_fourth(source, target, *options):
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(target)
        symlink(source, target, *options)

    with monkeypatch.context() as context:
        context.setattr(os, "symlink", stop_at_the_fourth)
        with pytest.raises(KeyboardInterrupt):
            export_run(run, "tree", tree)
    run = open_run(run.directory)
    run.merge([0, 1, 2])
    export_run(run, "tree", tree)
    assert {path.name for path in tree.iterdir()} == {LIST, "cat"}
