from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nouncut.compute.file_names import DistinctNames, safe_name

HOSTILE = st.one_of(
    st.text(alphabet=st.characters(), max_size=60),
    st.text(alphabet='./\\: _conCON\0\n\t\u3000\u202e\udce9"<>|?*é\u0301', max_size=30),
    st.sampled_from(["con", "NUL.txt", "aux .jpg", "com1", "LPT¹.png", "..", ".", "", "...png"]),
)
DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"
}


@given(HOSTILE, st.integers(20, 60))
@example("con.con.con.con.con.con", 20)
@example("\u3000", 20)
@example("a\u3000.", 20)
@example("." + "日" * 8 + "." + "日" * 8, 20)
def test_any_text_becomes_a_name_for_every_system(text, max_bytes):
    name = safe_name(text, fallback="cluster 7", max_bytes=max_bytes)
    assert 0 < len(name.encode("utf-8")) <= max_bytes
    assert not re.search(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]', name)
    assert not name.startswith(".")
    assert not name.endswith(".")
    assert name == name.strip()
    assert name.split(".")[0].rstrip(" ").lower() not in DEVICES
    assert PurePosixPath(name).parts == PureWindowsPath(name).parts == (name,)
    assert unicodedata.is_normalized("NFC", name)
    assert safe_name(name, fallback="cluster 7", max_bytes=max_bytes) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cat", "cat"),
        ("café \N{CAT FACE}", "café \N{CAT FACE}"),
        ("cafe\u0301", "café"),
        # The joiner in the middle makes one sign of three.
        ("\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}", "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"),
        ("../../etc/passwd", "_._.._etc_passwd"),
        ("C:\\Windows", "C__Windows"),
        (".hidden", "_hidden"),
        ("  dots... ", "dots"),
        ("NUL.jpg", "_NUL.jpg"),
        ("con.con", "_con.con"),
        ("aux .jpg", "_aux .jpg"),
        ("contact.jpg", "contact.jpg"),
        ("\0\n", "fallback"),
        ("photo\u202egpj.exe", "photo_gpj.exe"),
        ("undecodable \udce9", "undecodable _"),
        ("n" * 200 + ".jpg", "n" * 96 + ".jpg"),
        ("é" * 200, "é" * 50),
        ("x" * 95 + " yyyyy.jpg", "x" * 95 + ".jpg"),
    ],
)
def test_names(text, name):
    assert safe_name(text, fallback="fallback", max_bytes=100) == name


@given(st.lists(HOSTILE, max_size=20))
def test_names_in_a_folder_differ_on_every_system(texts):
    distinct = DistinctNames(max_bytes=24)
    names = [distinct.add(text, fallback="image") for text in texts]
    keys = {unicodedata.normalize("NFD", name.casefold()) for name in names}
    assert len(keys) == len(names)
    assert all(len(name.encode()) <= 24 for name in names)


def test_numbers_keep_the_file_type_and_the_length():
    distinct = DistinctNames(max_bytes=20)
    wanted = ["cat.jpg", "CAT.JPG", "cat (2).jpg", f"{'n' * 30}.jpg", f"{'n' * 30}.jpg"]
    assert [distinct.add(name, fallback="image") for name in wanted] == [
        "cat.jpg",
        "CAT (2).JPG",
        "cat (2) (2).jpg",
        f"{'n' * 16}.jpg",
        f"{'n' * 12} (2).jpg",
    ]


def test_many_equal_names_take_no_time():
    distinct = DistinctNames(max_bytes=40)
    names = [distinct.add("image.jpg", fallback="image") for _ in range(10_000)]
    assert names[:2] == ["image.jpg", "image (2).jpg"]
    assert names[-1] == "image (10000).jpg"
