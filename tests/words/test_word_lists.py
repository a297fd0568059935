import pytest

from nouncut.errors import InputError
from nouncut.words.word_lists import MAX_WORD_LENGTH, read_words


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="words.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("cat\ndog\n", ["cat", "dog"]),
        ("cat\ndog", ["cat", "dog"]),
        ("cat\r\ndog\r\n", ["cat", "dog"]),
        ("cat\rdog\r", ["cat", "dog"]),
        ("\ufeffcat\n", ["cat"]),
        ("\n  # pets\n\n  cat \t\n#dog\n", ["cat"]),
        ("Cat\ncat\nCAT\ndog\nStraße\nSTRASSE\n", ["Cat", "dog", "Straße"]),
        ("polar_bear\npolar  bear\n", ["polar bear"]),
        ("C#\nhot dog, mustard\n", ["C#", "hot dog, mustard"]),
        ("caf\u00e9\ncafe\u0301\nçay\n猫\n", ["café", "çay", "猫"]),
        ("a" * MAX_WORD_LENGTH, ["a" * MAX_WORD_LENGTH]),
        ("{}\n__\n", ["{}"]),
    ],
)
def test_text_file(write, content, expected):
    assert read_words(write(content)) == expected
    assert read_words(str(write(content))) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("cat,1\ndog,2\n", ["cat", "dog"]),
        ("id,Noun\n1,cat\n2,dog\n", ["cat", "dog"]),
        ("name,noun,word\nx,cat,y\n", ["cat"]),
        ("\ufeffid, word\n1, cat\n", ["cat"]),
        ("id;name\n1;cat, small\n", ["cat, small"]),
        ("id\tname\n\tcat\n2\tdog\n", ["cat", "dog"]),
        ('# mine, "all\nnoun,gloss\ncat,"a pet,\nor two"\n# more\n\n"dog ""Rex""",\n', None),
        ("noun,n\ncat,1\n,\n", ["cat"]),
        ("noun\r\ncat\r\n", ["cat"]),
    ],
)
def test_csv_file(write, content, expected):
    expected = expected or ["cat", 'dog "Rex"']
    assert read_words(write(content, "words.CSV")) == expected


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("w.txt", "", r"w\.txt has no words"),
        ("w.txt", "# only\n\n", r"w\.txt has no words"),
        ("w.csv", "", r"w\.csv has no words"),
        ("w.csv", "noun,gloss\n", r"w\.csv has no words"),
        ("w.txt", "cat\nd\xf6g\n".encode("latin-1"), r"w\.txt, line 2: not UTF-8"),
        ("w.txt", "cat\n".encode("utf-16"), r"w\.txt, line 1: not UTF-8"),
        ("w.txt", "cat\n".encode("utf-16-le"), r"w\.txt, line 1: a NUL .* UTF-16"),
        ("w.txt", "cat\nd\0g\n", r"w\.txt, line 2: a NUL character .*Remove it"),
        ("w.csv", b"cat\n\ndog,\xff\n", r"w\.csv, line 3: not UTF-8"),
        ("w.txt", "cat\n\n" + "a" * 201, r"w\.txt, line 3: the word has 201 characters"),
        ("w.csv", "n,noun\n1," + "a" * 201, r"w\.csv, line 2: the word has 201 characters"),
        ("w.csv", "id,noun\n1,cat\n\n2,\n", r"w\.csv, line 4: column 2 has no word"),
        ("w.csv", "id,noun\n1,cat\n2\n", r"w\.csv, line 3: column 2 has no word"),
        ("w.csv", 'noun\ncat\n\n"dog\nbird\n', r"w\.csv, line 4: not valid CSV"),
        ("w.csv", "noun,x\ncat," + "a" * 200_000, r"w\.csv, line 2: not valid CSV"),
        ("w.json", "[]", r"w\.json is neither a \.txt nor a \.csv file"),
        ("words", "cat", r"words is neither a \.txt nor a \.csv file"),
    ],
)
def test_errors_name_file_and_line(write, name, content, problem):
    with pytest.raises(InputError, match=problem):
        read_words(write(content, name))


def test_huge_file_is_refused(write):
    with pytest.raises(InputError, match=r"w\.txt has more than 16 MB"):
        read_words(write(b"cat\n" * 4_000_001, "w.txt"))


@pytest.mark.parametrize("name", ["none.txt", "folder.csv"])
def test_unreadable_file(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=rf"{name} cannot be read \(.+\)\. Check its name"):
        read_words(tmp_path / name)


def test_a_long_list_is_read_with_progress(tmp_path):
    path, seen = tmp_path / "w.txt", []
    path.write_text("\n".join(f"word {number}" for number in range(25_000)))
    words = read_words(path, progress=lambda *step: seen.append(step))
    assert len(words) == 25_000
    assert seen == [("reading words", done, 25_000) for done in (10_000, 20_000)]
