import json
import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from nouncut.errors import ImageError
from nouncut.images.decoder_messages import decoder_messages, dropped_stderr_lines
from nouncut.images.open import open_image

SHORT, LONG = 3, 4
COMPRESSIONS = ["tiff_lzw", "tiff_adobe_deflate", "jpeg"]


def damaged_tiff(path, compression):
    """Write a TIFF file whose compressed data are overwritten."""
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (60, 80, 3), dtype=np.uint8)).save(
        path, compression=compression
    )
    with Image.open(path) as image:
        start = image.tag_v2[273][0]
    content = bytearray(path.read_bytes())
    content[start : start + 1000] = b"\xa5" * 1000
    path.write_bytes(content)
    return path


@pytest.fixture
def odd_tiff(tmp_path, write_tiff):
    """Return a TIFF file with good pixels that makes Pillow warn."""
    tags = {256: (LONG, (8,)), 257: (LONG, (8,)), 258: (SHORT, (8,)), 259: (SHORT, (1,))}
    tags |= {262: (SHORT, (1,)), 277: (SHORT, (1,)), 278: (LONG, (8, 8))}
    return write_tiff(tmp_path / "odd.tif", tags, bytes(64))


def reason(path):
    with pytest.raises(ImageError) as caught:
        open_image(path)
    return caught.value.reason


def decode_with_pillow(path):
    with Image.open(path) as image, pytest.raises((OSError, SyntaxError)):
        image.load()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_words_of_libtiff_become_the_reason(tmp_path, capfd, compression):
    path = damaged_tiff(tmp_path / "x.tif", compression)
    found = reason(path)
    assert capfd.readouterr().err == ""
    assert found.startswith("the image is broken (")
    # Pillow itself only knows the number of the error.
    assert "decoder error" not in found
    decode_with_pillow(path)
    printed = capfd.readouterr().err
    assert found.removeprefix("the image is broken (").split(" N")[0].rstrip(")") in printed


def test_reasons_are_the_same_for_the_same_damage(tmp_path):
    Image.effect_noise((64, 64), 50).save(tmp_path / "x.jpg")
    content = (tmp_path / "x.jpg").read_bytes()
    reasons = set()
    for end in range(800, len(content) - 10, 100):
        (tmp_path / "x.jpg").write_bytes(content[:end])
        reasons.add(reason(tmp_path / "x.jpg"))
    assert reasons == {"the image is broken (image file is truncated)"}


def test_reasons_are_printable(tmp_path, monkeypatch):
    Image.new("RGB", (4, 4)).save(tmp_path / "x.png")

    def fail(*_):
        raise ValueError("a\x1b[2Jb\nc" + "d" * 1000)

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile._open", fail)
    found = reason(tmp_path / "x.png")
    assert found.isprintable()
    assert found.startswith("the image is broken (a[2Jb cddd")
    assert len(found) < 300


def test_errors_without_words_are_named(tmp_path, monkeypatch):
    Image.new("RGB", (4, 4)).save(tmp_path / "x.png")

    def fail(*_):
        raise KeyError(278)

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", fail)
    assert reason(tmp_path / "x.png") == "the image is broken (KeyError)"


def test_threads_get_their_own_messages(tmp_path, capfd):
    paths = {name: damaged_tiff(tmp_path / f"{name}.tif", name) for name in COMPRESSIONS}
    expected = {name: reason(path) for name, path in paths.items()}
    assert len(set(expected.values())) == len(COMPRESSIONS)
    names = COMPRESSIONS * 20
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: reason(paths[name]), names))
    assert found == [expected[name] for name in names]
    assert capfd.readouterr().err == ""


def test_warnings_of_pillow_are_not_heard(odd_tiff):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert open_image(odd_tiff).size == (8, 8)
        warnings.simplefilter("error")
        assert open_image(odd_tiff).size == (8, 8)
    assert caught == []


def test_warnings_of_others_are_heard(odd_tiff):
    open_image(odd_tiff)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with decoder_messages():
            warnings.warn("not heard", stacklevel=1)
            other = threading.Thread(target=warnings.warn, args=("of another thread",))
            other.start()
            other.join()
        with Image.open(odd_tiff):
            pass
    assert str(caught[0].message) == "of another thread"
    assert "had too many entries" in str(caught[1].message)


def test_large_images_do_not_warn_here_but_elsewhere(tmp_path, monkeypatch):
    Image.new("RGB", (100, 100)).save(tmp_path / "x.tif")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 6000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_image(tmp_path / "x.tif").size == (100, 100)
        with pytest.raises(Image.DecompressionBombWarning):
            Image.open(tmp_path / "x.tif")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4000)
    assert open_image(tmp_path / "x.tif").size == (100, 100)


def test_only_what_python_prints_reaches_the_terminal(tmp_path, odd_tiff, write_tiff):
    """A whole program: decoders, warnings and Pillow's log are silent, its own words are not."""
    many = {256: (LONG, (8,)), 257: (LONG, (8,)), 258: (SHORT, (8,)), 259: (SHORT, (1,))}
    many |= {262: (SHORT, (1,)), 277: (SHORT, (2000,)), 278: (LONG, (8,))}
    write_tiff(tmp_path / "many.tif", many, bytes(64))
    paths = [damaged_tiff(tmp_path / f"{name}.tif", name) for name in COMPRESSIONS]
    paths += [odd_tiff, tmp_path / "many.tif"]
    script = """
import json, sys
from nouncut.errors import ImageError
from nouncut.images.read_ahead import load_ahead
print("before", file=sys.stderr)
loaded = load_ahead(sys.argv[1:], lambda image: image.size, n_threads=3, ahead=9)
print(json.dumps([getattr(result, "reason", result) for _, result in loaded]))
print("after", file=sys.stderr)
"""
    command = [sys.executable, "-c", script, *map(str, paths)]
    ours = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ours.stderr == "before\nafter\n"
    *broken, odd, samples = json.loads(ours.stdout)
    assert all(one.startswith("the image is broken (") for one in broken)
    assert odd == [8, 8]
    assert samples == "the image is broken (Invalid value for samples per pixel)"

    plain = """
import sys
from PIL import Image
for path in sys.argv[1:]:
    try:
        Image.open(path).load()
    except Exception:
        pass
"""
    command = [sys.executable, "-c", plain, *map(str, paths)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "More samples per pixel" in printed
    assert "had too many entries" in printed
    assert "Decoding error" in printed


def test_lines_of_standard_error_are_dropped_and_others_kept(capfd):
    with dropped_stderr_lines(rb"^noise"):
        os.write(2, b"noise of a decoder\nwords of a decoder\n")
        os.write(2, b"words, no noise")
    os.write(2, b" ...\n")
    assert capfd.readouterr().err == "words of a decoder\nwords, no noise ...\n"


def test_lines_are_kept_when_the_block_fails(capfd):
    def fail():
        with dropped_stderr_lines(rb"^noise"):
            os.write(2, b"noise\nwords\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert capfd.readouterr().err == "words\n"


def test_standard_error_may_be_closed():
    script = """
import os
from nouncut.images.decoder_messages import dropped_stderr_lines
os.close(2)
with dropped_stderr_lines(b"x"):
    print("done")
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "done\n")
