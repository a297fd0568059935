import itertools
import threading
import time

import numpy as np
import pytest
from PIL import Image

from nouncut.errors import ImageError
from nouncut.images.read_ahead import load_ahead


@pytest.fixture
def files(tmp_path):
    paths = []
    for number in range(40):
        path = tmp_path / f"{number:02}.png"
        Image.new("RGB", (4, 4), (number, 0, 0)).save(path)
        paths.append(path)
    paths[7].write_bytes(b"broken")
    paths[11].unlink()
    return paths


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("nouncut-images")]


def red(image):
    return image.getpixel((0, 0))[0]


@pytest.mark.parametrize(("n_threads", "ahead"), [(1, 1), (2, 5), (4, 100)])
def test_results_come_in_order(files, n_threads, ahead):
    rng = np.random.default_rng(0)
    delays = rng.uniform(0, 0.004, len(files))

    def slow(image):
        time.sleep(delays[red(image)])
        return red(image)

    loaded = list(load_ahead(files, slow, n_threads=n_threads, ahead=ahead))
    assert [position for position, _ in loaded] == list(range(len(files)))
    for position, result in loaded:
        if position in (7, 11):
            assert isinstance(result, ImageError)
            assert result.path == files[position]
        else:
            assert result == position
    assert not threads()


def test_at_most_ahead_images_are_in_flight(files):
    taken = itertools.count()
    started = 0

    def endless():
        nonlocal started
        for path in itertools.cycle(files):
            started += 1
            yield path

    loaded = load_ahead(endless(), red, n_threads=3, ahead=6)
    for (_, _), number in zip(loaded, taken):  # noqa: B905
        assert started - (number + 1) <= 6
        time.sleep(0.002)
        if number == 60:
            break
    loaded.close()
    assert not threads()


def test_closing_stops_the_threads_at_once(files):
    calls = []

    def slow(image):
        calls.append(red(image))
        time.sleep(0.1)
        return 0

    loaded = load_ahead(files, slow, n_threads=2, ahead=40)
    next(loaded)
    n_before = len(calls)
    loaded.close()
    assert not threads()
    # Those under way end; the others of 40 are not begun.
    assert len(calls) - n_before < 20


def test_a_consumer_that_fails_leaves_no_threads(files):
    def consume():
        for position, _ in load_ahead(files, red, n_threads=2, ahead=4):
            if position == 3:
                raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        consume()
    assert not threads()


def test_errors_of_prepare_are_raised_in_order(files):
    def prepare(image):
        if red(image) == 5:
            raise ZeroDivisionError("a bug")
        if red(image) == 3:
            raise ImageError(files[3], "too odd")
        return red(image)

    loaded = load_ahead(files, prepare, n_threads=2, ahead=10)
    results = [next(loaded)[1] for _ in range(5)]
    assert results[3].reason == "too odd"
    with pytest.raises(ZeroDivisionError, match="a bug"):
        next(loaded)
    assert not threads()


def test_arguments_are_checked_at_the_call(files):
    for bad in ({"n_threads": 0, "ahead": 1}, {"n_threads": 1, "ahead": 0}):
        with pytest.raises(ValueError, match="must be a whole number of at least 1"):
            load_ahead(files, red, **bad)
    assert list(load_ahead([], red, n_threads=2, ahead=2)) == []


def test_min_side_reaches_the_decoder(tmp_path):
    Image.new("RGB", (800, 800)).save(tmp_path / "x.jpg")
    sizes = load_ahead(
        [tmp_path / "x.jpg"], lambda image: image.size, min_side=100, n_threads=1, ahead=1
    )
    assert list(sizes) == [(0, (100, 100))]
