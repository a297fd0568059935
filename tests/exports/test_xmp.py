from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut.exports.part import part_of
from nouncut.exports.sidecar import keywords_of, new_sidecar
from nouncut.exports.xmp import export_xmp, plan_sidecars

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
SUBJECT = "{http://purl.org/dc/elements/1.1/}subject"
HIERARCHY = "{http://ns.adobe.com/lightroom/1.0/}hierarchicalSubject"


def sidecar(name, fallback="unnamed", above=()):
    return new_sidecar(keywords_of(name, fallback, above))


def targets(run, destination):
    return [(one.image, one.target) for one in plan_sidecars(run, destination)]


def keywords(content: bytes) -> tuple[list[str], list[str]]:
    root = ET.fromstring(content)
    assert root.tag == "{adobe:ns:meta/}xmpmeta"
    description = root.find(f"{RDF}RDF/{RDF}Description")
    assert description.get(f"{RDF}about") == ""
    return tuple(
        [item.text for item in description.findall(f"{tag}/{RDF}Bag/{RDF}li")]
        for tag in (SUBJECT, HIERARCHY)
    )


@given(st.text(alphabet=st.characters(), max_size=40))
def test_any_name_makes_well_formed_keywords(name):
    flat, (path,) = keywords(sidecar(name, "fallback"))
    assert flat[0] == "nouncut"
    assert flat[1]
    assert path == f"nouncut|{flat[1]}"
    assert "|" not in flat[1]


@pytest.mark.parametrize(
    ("name", "keyword"),
    [
        ("cat", "cat"),
        ("</rdf:li><x>&amp; ]]>", "</rdf:li><x>&amp; ]]>"),
        ("café\n\N{SNAKE}", "café \N{SNAKE}"),
        ("a|b", "a-b"),
        ("bell\x07\ufffe\udce9", "bell"),
        ("\0", "cluster 3"),
    ],
)
def test_keywords(name, keyword):
    assert keywords(sidecar(name, "cluster 3")) == (["nouncut", keyword], [f"nouncut|{keyword}"])


def test_the_mirror_holds_a_sidecar_of_every_image(small_run, tmp_path):
    before = sorted((tmp_path / "photos").rglob("*"))
    result = export_xmp(part_of(small_run), tmp_path / "mirror")
    assert (result.n_written, result.n_kept, result.problems) == (len(small_run.labels), 0, [])
    for path, label in zip(small_run.paths(), small_run.labels, strict=True):
        inside = path.relative_to(tmp_path / "photos")
        content = Path(f"{tmp_path / 'mirror' / inside}.xmp").read_bytes()
        assert keywords(content)[0][1] == " ".join(small_run.names[label].split())
    assert sorted((tmp_path / "photos").rglob("*")) == before
    assert str(tmp_path / "photos") in result.hint


@pytest.mark.parametrize("beside", [False, True])
def test_again_writes_nothing(small_run, tmp_path, beside):
    export_xmp(part_of(small_run), tmp_path / "mirror", beside=beside)
    result = export_xmp(part_of(small_run), tmp_path / "mirror", beside=beside)
    assert (result.n_written, result.n_kept, result.problems) == (0, len(small_run.labels), [])


def test_beside_the_images(small_run, tmp_path):
    result = export_xmp(part_of(small_run), tmp_path / "mirror", beside=True)
    assert result.n_written == len(small_run.labels)
    assert not (tmp_path / "mirror").exists()
    assert all(Path(f"{path}.xmp").is_file() for path in small_run.paths())
    assert not list((tmp_path / "photos").rglob(".*"))


def test_no_sidecar_beside_an_image_that_is_gone(small_run, tmp_path):
    gone = small_run.paths()[0]
    gone.unlink()
    result = export_xmp(part_of(small_run), tmp_path / "mirror", beside=True)
    assert len(result.problems) == 1
    assert "the image no longer exists" in result.problems[0]
    assert not Path(f"{gone}.xmp").exists()
    assert export_xmp(part_of(small_run), tmp_path / "mirror").n_written == len(small_run.labels)


def test_the_mirror_does_not_lead_outside(write_run, tmp_path):
    images = [tmp_path / "photos" / "a" / "x.jpg", tmp_path / "photos" / "b" / ".." / "y.jpg"]
    run = write_run(images, [0, 0], ["cat"])
    (tmp_path / "mirror").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "mirror" / "a").symlink_to(tmp_path / "outside")
    result = export_xmp(part_of(run), tmp_path / "mirror")
    assert (result.n_written, len(result.problems)) == (1, 1)
    assert (tmp_path / "mirror" / "y.jpg.xmp").is_file()
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_name_too_long_for_a_sidecar_is_told(write_run, tmp_path):
    images = [tmp_path / f"{'n' * 251}.jpg", tmp_path / "x.jpg"]
    run = write_run(images, [0, 0], ["cat"])
    result = export_xmp(part_of(run), tmp_path / "mirror")
    assert (result.n_written, len(result.problems)) == (1, 1)
    assert "too long" in result.problems[0]


def test_one_image_is_mirrored_by_its_name(write_run, tmp_path):
    run = write_run(["/photos/x.jpg"], [0], ["cat"])
    assert targets(run, tmp_path) == [(Path("/photos/x.jpg"), tmp_path / "x.jpg.xmp")]


def test_folders_whose_names_are_not_text_are_mirrored(write_run, tmp_path):
    folders = [tmp_path / "photos" / name for name in ("caf\udce8", "caf\udce9")]
    run = write_run([folder / "x.jpg" for folder in folders], [0, 0], ["cat"])
    plan = targets(run, tmp_path / "mirror")
    assert [target for _, target in plan] == [
        tmp_path / "mirror" / folder.name / "x.jpg.xmp" for folder in folders
    ]
    run = write_run([folders[0] / "x.jpg", folders[0] / "y.jpg"], [0, 0], ["cat"])
    assert [target.name for _, target in targets(run, tmp_path)] == ["x.jpg.xmp", "y.jpg.xmp"]


def test_the_longest_name_that_has_room_for_a_sidecar(write_run, tmp_path):
    image = tmp_path / f"{'n' * 247}.jpg"
    result = export_xmp(part_of(write_run([image], [0], ["cat"])), tmp_path / "mirror")
    assert (result.n_written, result.problems) == (1, [])
    assert [path.name for path in (tmp_path / "mirror").iterdir()] == [f"{image.name}.xmp"]


def test_network_paths_are_mirrored_with_others(write_run, tmp_path):
    images = [Path("//server/share/a/x.jpg"), Path("/photos/y.jpg"), Path("//server/share/z.jpg")]
    result = export_xmp(part_of(write_run(images, [0, 0, 0], ["cat"])), tmp_path / "mirror")
    assert (result.n_written, result.problems) == (3, [])
    assert (tmp_path / "mirror" / "server" / "share" / "a" / "x.jpg.xmp").is_file()


@pytest.mark.parametrize("name", ["/", "..", ".", "", "x.", ".jpg", "a" * 253, "b.jpg\n", " "])
@pytest.mark.parametrize("beside", [False, True])
def test_odd_names_get_a_sidecar_or_a_problem(write_run, tmp_path, name, beside):
    image = tmp_path / "photos" / name
    image.parent.mkdir(exist_ok=True)
    if name not in ("/", "..", ".", ""):
        image.write_bytes(b"\xff\xd8\xff")
    run = write_run([image, Path(name)], [0, 0], ["cat"])
    result = export_xmp(part_of(run), tmp_path / "mirror", beside=beside)
    assert result.n_written + result.n_kept + len(result.problems) >= 2


def test_no_sidecar_beside_files_that_are_none_of_the_images(write_run, tmp_path):
    secret = tmp_path / "config"
    secret.write_text("secret")
    result = export_xmp(
        part_of(write_run([secret], [0], ["cat"])), tmp_path / "mirror", beside=True
    )
    assert (result.n_written, len(result.problems)) == (0, 1)
    assert sorted(os.listdir(tmp_path)) == ["config"]


def test_a_pipe_in_the_place_of_a_sidecar_is_not_read(write_run, tmp_path):
    (tmp_path / "mirror").mkdir()
    os.mkfifo(tmp_path / "mirror" / "x.jpg.xmp")
    result = export_xmp(part_of(write_run(["/photos/x.jpg"], [0], ["cat"])), tmp_path / "mirror")
    assert (result.n_written, result.n_kept, len(result.problems)) == (0, 0, 1)


TAGS = "{http://www.digikam.org/ns/1.0/}TagsList"


def tags(content: bytes) -> list[str]:
    description = ET.fromstring(content).find(f"{RDF}RDF/{RDF}Description")
    return [item.text for item in description.findall(f"{TAGS}/{RDF}Seq/{RDF}li")]


def test_keywords_below_keywords():
    content = sidecar("cat", above=("a/b", "<pet> | \0", "\0"))
    assert keywords(content) == (
        ["nouncut", "a/b", "<pet> -", "cat"],
        ["nouncut|a/b|<pet> -|cat"],
    )
    assert tags(content) == ["nouncut/a-b/<pet> -/cat"]
    assert tags(sidecar("</rdf:li> & co")) == ["nouncut/<-rdf:li> & co"]


def test_groups_of_groups_are_keywords(make_run, tmp_path):
    levels = {"sizes": [12, 8, 4], "levels": [[0, 1, 0]]}
    run = make_run(tmp_path / "run", manifest={"tree": levels})
    export_xmp(part_of(run), tmp_path / "mirror", nested=True)
    depths = {}
    for path, label in zip(run.paths(), run.labels.tolist(), strict=True):
        inside = path.relative_to(tmp_path / "photos")
        content = Path(f"{tmp_path / 'mirror' / inside}.xmp").read_bytes()
        depths.setdefault(label, set()).add(keywords(content)[1][0].count("|"))
    assert depths == {0: {2}, 1: {1}, 2: {2}}
