import gzip
import importlib.util
from importlib.resources import files
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_wordnet.py"
DEBIAN = Path("/usr/share/wordnet")
# Lines as in WordNet's own files, with fewer pointers and shorter glosses.
DATA = """\
  1 This software and database is being provided to you, the LICENSEE, by
  2 Princeton University under the following license.
00001740 03 n 01 entity 0 002 ~ 00001930 n 0000 ~ 00002137 n 0000 | that which is perceived
02124272 05 n 01 cougar 0 001 @ 02127808 n 0000 | large American feline
02959942 06 n 05 car 0 auto 0 automobile 0 machine 0 motorcar 0 \
002 @ 03791235 n 0000 ~ 02701002 n 0000 | a motor vehicle
08929922 15 n 03 Paris 0 City_of_Light 0 capital_of_France 0 \
003 @i 08691669 n 0000 @ 08524735 n 0000 ;c 00314469 n 0000 | the capital | of France
"""
INDEX = """\
  1 This software and database is being provided to you, the LICENSEE, by
entity n 1 1 ~ 1 1 00001740
cougar n 1 1 @ 1 0 02124272
car n 3 2 @ ~ 3 1 02958343 02959942 02960501
auto n 1 1 @ 1 0 02959942
automobile n 1 1 @ 1 0 02959942
machine n 2 1 @ 2 2 03699975 02959942
motorcar n 1 1 @ 1 0 02959942
paris n 1 1 @ 1 0 08929922
city_of_light n 1 1 @ 1 0 08929922
capital_of_france n 1 1 @ 1 0 08929922
"""


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("build_wordnet", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def dictionary(tmp_path):
    folder = tmp_path / "dict"
    folder.mkdir()
    (folder / "data.noun").write_text(DATA)
    (folder / "index.noun").write_text(INDEX)
    return folder


def test_rows(script, dictionary):
    rows = script.build_rows(dictionary)
    assert [list(row) for row in rows] == [
        ["n00001740", "Tops", "0", "entity", "1", "", "that which is perceived"],
        ["n02124272", "animal", "0", "cougar", "1", "n02127808", "large American feline"],
        [
            "n02959942",
            "artifact",
            "0",
            "car|auto|automobile|machine|motorcar",
            "2 1 1 2 1",
            "n03791235",
            "a motor vehicle",
        ],
        [
            "n08929922",
            "location",
            "1",
            "Paris|City of Light|capital of France",
            "1 1 1",
            "n08524735 n08691669",
            "the capital | of France",
        ],
    ]


def test_descendants_are_counted_once(script):
    rows = [
        ("n1", "", "0", "top", "1", "", "all"),
        ("n2", "", "0", "left", "1", "n1", "a half"),
        ("n3", "", "0", "right", "1", "n1", "the other"),
        ("n4", "", "0", "middle", "1", "n2 n3", "both"),
    ]
    assert script.count_descendants(rows) == [4, 2, 2, 1]


def test_command_writes_the_same_bytes_twice(script, dictionary, tmp_path, capsys):
    written = []
    for name in ("one", "two"):
        output = tmp_path / name
        script.main([str(dictionary), "--output", str(output)])
        assert capsys.readouterr().out.startswith("4 synsets, ")
        written.append({path.name: path.read_bytes() for path in output.iterdir()})
    assert written[0] == written[1]
    expected = script.build_tables(script.build_rows(dictionary))
    for name, text in expected.items():
        assert gzip.decompress(written[0][name]).decode() == text
    assert written[0][script.LICENSE_NAME].decode() == (
        "This software and database is being provided to you, the LICENSEE, by\n"
        "Princeton University under the following license.\n"
    )


@pytest.mark.skipif(not DEBIAN.exists(), reason="needs Debian's package wordnet-base")
def test_package_data_is_what_the_script_builds(script):
    data = files("nouncut.words") / "data"
    for name, text in script.build_tables(script.build_rows(DEBIAN)).items():
        assert gzip.decompress((data / name).read_bytes()).decode() == text
    assert (data / script.LICENSE_NAME).read_text() == script.read_license(DEBIAN)
