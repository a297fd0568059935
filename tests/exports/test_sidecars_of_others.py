"""Sidecars that photo managers wrote: nothing in them is lost, and our keywords are replaced."""

from __future__ import annotations

import os
import stat
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut.errors import InputError
from nouncut.exports.registry import export_run
from nouncut.exports.sidecar import (
    HIERARCHY,
    SUBJECT,
    TAGS,
    keywords_of,
    merged_sidecar,
    new_sidecar,
)

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
# As darktable writes them: a rating, a history and flat keywords, with a packet around.
DARKTABLE = """\
<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:darktable="http://darktable.sf.net/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
   xmp:Rating="4"
   darktable:xmp_version="5">
   <darktable:history>
    <rdf:Seq>
     <rdf:li darktable:num="0" darktable:params="gz02eJxjYG &lt;"/>
    </rdf:Seq>
   </darktable:history>
   <dc:subject>
    <rdf:Bag>
     <rdf:li>holiday</rdf:li>
     <rdf:li>dog</rdf:li>
    </rdf:Bag>
   </dc:subject>
   <!-- a note -->
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
""".encode()
DOG, CAT = keywords_of("dog", "x"), keywords_of("cat & mouse", "x", ("pets",))


def values(content: bytes, one: tuple) -> list[str]:
    _, uri, name, kind = one
    return [
        li.text for li in ET.fromstring(content).iterfind(f".//{{{uri}}}{name}/{RDF}{kind}/{RDF}li")
    ]


def canonical(content: bytes) -> str:
    return ET.canonicalize(content.decode(), strip_text=True, with_comments=True)


def test_keywords_are_added_to_those_that_are_there():
    merged = merged_sidecar(DARKTABLE, CAT)
    assert values(merged, SUBJECT) == ["holiday", "dog", "nouncut", "pets", "cat & mouse"]
    # Programs that find a hierarchy ignore the flat keywords, so these are in it as well.
    assert values(merged, HIERARCHY) == ["nouncut|pets|cat & mouse", "holiday", "dog"]
    assert values(merged, TAGS) == ["nouncut/pets/cat & mouse", "holiday", "dog"]
    for part in (b'xmp:Rating="4"', b"gz02eJxjYG &lt;", b"<!-- a note -->", b'<?xpacket end="w"?>'):
        assert part in merged
    assert merged_sidecar(merged, CAT) == merged


def test_only_our_keywords_are_replaced_and_removed():
    merged = merged_sidecar(merged_sidecar(DARKTABLE, CAT), DOG)
    assert values(merged, SUBJECT) == ["holiday", "dog", "nouncut"]
    assert values(merged, HIERARCHY) == ["nouncut|dog", "holiday", "dog"]
    assert canonical(merged_sidecar(merged, {})) == canonical(DARKTABLE)


def test_keywords_added_later_by_a_person_stay():
    merged = merged_sidecar(DARKTABLE, CAT).replace(
        b"<rdf:li>holiday</rdf:li>", b"<rdf:li>holiday</rdf:li><rdf:li>Rex</rdf:li>", 1
    )
    again = merged_sidecar(merged, DOG)
    assert values(again, SUBJECT) == ["holiday", "Rex", "dog", "nouncut"]
    assert values(again, HIERARCHY) == ["nouncut|dog", "holiday", "Rex", "dog"]


def test_a_sidecar_of_ours_alone_is_made_anew_or_ends():
    assert merged_sidecar(new_sidecar(DOG), CAT) == new_sidecar(CAT)
    assert merged_sidecar(new_sidecar(DOG), DOG) == new_sidecar(DOG)
    assert merged_sidecar(new_sidecar(DOG), {}) is None


WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=3), min_size=1, max_size=4), st.booleans())
def test_any_sequence_of_names_ends_like_the_last_alone(names, digikam):
    content = DARKTABLE
    for *above, name in names:
        wanted = keywords_of(name, "x", above, digikam=digikam)
        content = merged_sidecar(content, wanted)
    alone = merged_sidecar(DARKTABLE, wanted)
    for one in (SUBJECT, HIERARCHY, TAGS):
        assert values(content, one) == values(alone, one)
    assert canonical(merged_sidecar(content, {})) == canonical(DARKTABLE)


BOMB = (
    b"""<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><x>&b;</x>"""
)
STRANGE = DARKTABLE.replace(b"<dc:subject>", b"<dc:subject/><dc:subject>")
FRAME = DARKTABLE.decode().partition("<darktable:history>")[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not well-formed"),
        (b"<mine/>", "no XMP"),
        (b"<mine>", "not well-formed"),
        (b"\xff\xfe\x00", "not well-formed"),
        (b'<?xml version="1.0" encoding="no-such"?><x/>', "not well-formed"),
        (BOMB, "document type"),
        (b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', "document type"),
        (b"<a>" * 200_000, "nested too deeply"),
        (b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>', "no XMP"),
        (STRANGE, "not lists"),
        (DARKTABLE.replace(b'xmp:Rating="4"', b'dc:subject="cat"'), "not lists"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(content, reason):
    with pytest.raises(InputError, match=reason):
        merged_sidecar(content, DOG)


@pytest.fixture
def photo(tmp_path):
    image = tmp_path / "x.jpg"
    image.write_bytes(b"\xff\xd8\xff")
    return image


def test_a_sidecar_beside_an_image_keeps_its_content_and_permissions(write_run, photo):
    place = Path(f"{photo}.xmp")
    place.write_bytes(DARKTABLE)
    place.chmod(0o640)
    run = write_run([photo], [0], ["cat"])
    result = export_run(run, "xmp", beside=True)
    assert (result.n_written, result.problems, result.path) == (1, [], photo.parent)
    assert "cat" in values(place.read_bytes(), SUBJECT)
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert export_run(run, "xmp", beside=True).n_kept == 1
    run.rename(0, "lion")
    export_run(run, "xmp", beside=True)
    assert values(place.read_bytes(), SUBJECT) == ["holiday", "dog", "nouncut", "lion"]
    run.set_aside(0)
    assert export_run(run, "xmp", beside=True).n_images == 0
    assert canonical(place.read_bytes()) == canonical(DARKTABLE)
    assert sorted(os.listdir(photo.parent)) == ["x.jpg", "x.jpg.xmp"]


def test_sidecars_of_images_set_aside_are_removed_if_they_were_ours(small_run, tmp_path):
    export_run(small_run, "xmp", tmp_path / "mirror")
    small_run.set_aside(3)
    result = export_run(small_run, "xmp", tmp_path / "mirror")
    assert (result.n_written, result.n_kept, result.n_removed) == (0, 23, 1)
    assert len(list((tmp_path / "mirror").rglob("*.xmp"))) == 23


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.jpg.xmp", b"<mine/>", "no XMP"),
        ("x.jpg.xmp", BOMB, "document type"),
        ("x.jpg.xmp", b" " * 16_000_001, "larger than 16 MB"),
        ("x.xmp", DARKTABLE, "x.xmp is there"),
    ],
)
def test_sidecars_that_are_left_alone_are_named(write_run, photo, name, content, reason):
    (photo.parent / name).write_bytes(content)
    result = export_run(write_run([photo], [0], ["cat"]), "xmp", beside=True)
    assert (result.n_written, result.n_kept) == (0, 0)
    assert reason in result.problems[0]
    assert (photo.parent / name).read_bytes() == content
    assert sorted(os.listdir(photo.parent)) == sorted(["x.jpg", name])


def test_a_link_in_the_place_of_a_sidecar_is_left_alone(write_run, photo, tmp_path):
    (tmp_path / "elsewhere").write_bytes(DARKTABLE)
    Path(f"{photo}.xmp").symlink_to(tmp_path / "elsewhere")
    result = export_run(write_run([photo], [0], ["cat"]), "xmp", beside=True)
    assert "it is a link" in result.problems[0]
    assert (tmp_path / "elsewhere").read_bytes() == DARKTABLE


def test_names_and_properties_for_each_program(small_run, tmp_path):
    for program in ("digikam", "darktable"):
        export_run(small_run, "xmp", tmp_path / program, program=program)
        assert (tmp_path / program / "20.png.xmp").is_file()
        assert values((tmp_path / program / "20.png.xmp").read_bytes(), TAGS)
    result = export_run(small_run, "xmp", tmp_path / "lightroom", program="lightroom")
    content = (tmp_path / "lightroom" / "20.xmp").read_bytes()
    assert values(content, SUBJECT)[0] == "nouncut"
    assert values(content, HIERARCHY)[0].startswith("nouncut|")
    assert values(content, TAGS) == []
    assert "Lightroom reads sidecars of raw files only; 24 of 24 images are none" in result.hint


def test_raw_files_own_the_sidecars_that_they_share(write_run, tmp_path):
    names = ("a.jpg", "a.CR2", "b.jpg", "b.nef", "c.png", "c.jpg")
    images = [tmp_path / "photos" / name for name in names]
    run = write_run(images, [0, 1, 1, 1, 0, 1], ["cat", "dog"])
    result = export_run(run, "xmp", tmp_path / "xmp", program="lightroom")
    found = {path.name: values(path.read_bytes(), SUBJECT)[1] for path in result.files}
    assert found == {"a.xmp": "dog", "b.xmp": "dog", "c.xmp": "cat"}
    assert result.problems == [
        f"{images[0]}: left out, since it shares a.xmp with a.CR2, which is in another group",
        f"{images[5]}: left out, since it shares c.xmp with c.png, which is in another group",
    ]
    part = export_run(run, "xmp", tmp_path / "part", program="lightroom", rows=[0])
    assert (part.n_images, part.files, len(part.problems)) == (0, [], 1)
