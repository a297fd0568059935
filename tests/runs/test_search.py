"""Images of a run by text, by example, and duplicates."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from nouncut import cluster_images, open_run
from nouncut.compute.rows import unit_rows
from nouncut.errors import InputError, ParameterError
from nouncut.models.choose import load_encoder
from nouncut.paper.synthetic import make_clip_like
from nouncut.runs.search import Searcher, best_rows, find_duplicates
from nouncut.store.store import FeatureStore

N = 18


@pytest.fixture
def run(draw, tiny_clip, store, words, tmp_path):
    return cluster_images(
        draw(range(N)), 3, model=tiny_clip, vocabulary=words, store=store, output=tmp_path / "run"
    )


@pytest.fixture
def features(tmp_path):
    """Return a run of features without a model."""
    data = make_clip_like(n_images=120, n_clusters=3, random_state=0)
    np.save(tmp_path / "clip.npy", data.features)
    return cluster_images(tmp_path / "clip.npy", 3, output=tmp_path / "features-run")


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    st.sets(st.integers(0, 29)),
    st.none() | st.integers(0, 35),
)
def test_the_best_rows_are_those_of_a_stable_sort(scores, chosen, n):
    scores = np.array(scores, dtype=np.float32)
    rows = np.array(sorted(chosen), dtype=np.intp)
    rows = rows[rows < len(scores)]
    expected = rows[np.argsort(-scores[rows], kind="stable")][:n]
    assert best_rows(scores, rows, n).tolist() == expected.tolist()


def renamed(run, *names, guess=False):
    """Return the run with other names."""
    clusters = run.clusters
    for column, values in (("name", names), ("guess", [guess] * 3), ("gloss", [""] * 3)):
        place = clusters.schema.get_field_index(column)
        field = clusters.schema.field(place)
        clusters = clusters.set_column(place, field, pa.array(values, field.type))
    again = open_run(run.directory)
    again.__dict__["clusters"] = clusters
    return again


def test_text_ranks_all_images_by_their_cosine(run, tiny_clip):
    other = renamed(run, "group 1", "group 2", "group 3")
    found = other.search("a dog beside a lake", n=None)
    text = load_encoder(tiny_clip).encoder.encode_texts(["a dog beside a lake"])[0]
    cosines = unit_rows(run.array("semantic")) @ text
    np.testing.assert_allclose(found["score"].to_numpy(), np.sort(cosines)[::-1], atol=1e-5)
    np.testing.assert_allclose(cosines[found["row"]], found["score"].to_numpy(), atol=1e-5)
    assert not any(found["by_name"].to_pylist())
    rows = found["row"].to_numpy()
    assert found["cluster"].to_pylist() == run.labels[rows].tolist()
    paths = [str(path) for path in run.paths()]
    assert found["path"].to_pylist() == [paths[row] for row in rows]


@pytest.mark.parametrize(
    ("text", "clusters"),
    [
        ("dog", {0}),
        ("dogs on grass", {0}),
        ("animals", {0, 1}),
        ("grass under dogs", set()),
        ("fruit and hounds", {0, 2}),
        ("golden delicious", set()),
        ("zwrtkx", {2}),
    ],
)
def test_images_of_groups_below_the_word_come_first(run, text, clusters):
    named = renamed(run, "beagle", "tabby cat", "Zwrtkx and apples")
    found = named.search(text, n=None)
    flags = found["by_name"].to_numpy(zero_copy_only=False)
    n_named = int(np.isin(run.labels, list(clusters)).sum())
    assert flags[:n_named].all()
    assert not flags[n_named:].any()
    assert set(found["cluster"].to_pylist()[:n_named]) == clusters
    scores = found["score"].to_numpy()
    for part in (scores[:n_named], scores[n_named:]):
        assert (np.diff(part) <= 0).all()


def test_guesses_do_not_count_as_names(run):
    for guess in (False, True):
        named = renamed(run, "beagle", "hound", "truck", guess=guess)
        assert any(named.search("dog")["by_name"].to_pylist()) != guess


def test_an_image_of_the_run_is_most_like_itself_under_another_name(run, store, tmp_path):
    first = run.paths()[0]
    shutil.copy(first, tmp_path / "copy.png")
    searcher = Searcher(run, store)
    by_copy = searcher.like(tmp_path / "copy.png", 3)
    assert by_copy["row"][0].as_py() == 0
    assert by_copy["score"][0].as_py() == pytest.approx(1, abs=1e-4)
    by_row = run.search(like=0, n=3)
    # The example itself is not among the results.
    assert by_row["row"].to_pylist()[:2] == by_copy["row"].to_pylist()[1:]
    assert run.search(like=first, n=3).equals(by_row)
    looks = unit_rows(run.array("features"))
    expected = np.argsort(-(looks @ looks[0]), kind="stable")
    assert by_row["row"].to_pylist() == [row for row in expected if row != 0][:3]


def test_wrong_requests_are_explained(run, features, tmp_path):
    with pytest.raises(ParameterError, match="either `text` or `like`"):
        run.search()
    with pytest.raises(ParameterError, match="The text is empty"):
        run.search("  ")
    with pytest.raises(ParameterError, match="`n` must be a whole number"):
        run.search("dog", n=0)
    with pytest.raises(InputError, match="not an image of this run"):
        run.search(like="no/such.png")
    with pytest.raises(InputError, match="There is no image 99"):
        run.search(like=99)
    with pytest.raises(InputError, match="without a model that reads texts"):
        features.search("dog")
    model = run.manifest["model"] | {"fingerprint": "another"}
    with pytest.raises(InputError, match="another version of"):
        replace(run, manifest=run.manifest | {"model": model}).search("dog")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"broken\.png"):
        run.search(like=tmp_path / "broken.png")


def test_words_that_the_model_does_not_know_are_named(tmp_path, draw):
    run = cluster_images(
        draw(range(6)),
        2,
        model="mini",
        vocabulary=["cat", "dog"],
        store=FeatureStore(tmp_path / "store"),
        output=tmp_path / "run",
    )
    with pytest.raises(InputError, match="mini knows no word of zwrtkx"):
        run.search("zwrtkx")
    assert len(run.search("red dogs", n=4)) == 4


def test_copies_and_near_duplicates_are_groups(draw, tiny_clip, store, words, tmp_path):
    photos = draw(range(12))
    shutil.copy(photos / "00.png", photos / "copy of 00.png")
    pixels = np.asarray(Image.open(photos / "01.png")).copy()
    pixels[0, 0] += 1
    Image.fromarray(pixels).save(photos / "nearly 01.png")
    options = {"model": tiny_clip, "vocabulary": words, "store": store}
    run = cluster_images(photos, 3, compare="looks", output=tmp_path / "run", **options)
    # Pictures of one colour are nearly the same to a random model.
    found = find_duplicates(run, 0.999999)
    groups = {}
    for row in found.to_pylist():
        groups.setdefault(row["group"], set()).add((row["path"].split("/")[-1], row["copy"]))
    assert {("00.png", True), ("copy of 00.png", True)} in groups.values()
    assert {("01.png", False), ("nearly 01.png", False)} in groups.values()
    assert sorted(groups) == list(range(len(groups)))
    assert min(found["similarity"].to_pylist()) >= 0.999999
    with pytest.raises(ParameterError, match="`threshold` must be above 0"):
        run.duplicates(0)
    by_words = cluster_images(photos, 3, output=tmp_path / "by words", **options)
    with pytest.raises(InputError, match="compares images by words"):
        by_words.duplicates()


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9, 0.999])
def test_duplicates_are_the_connected_parts_of_close_neighbours(features, threshold):
    looks = unit_rows(features.array("features"))
    close = (features.graph().toarray() > 0) & (looks @ looks.T >= threshold)
    unseen, parts = set(range(len(looks))), set()
    while unseen:
        part, new = set(), {unseen.pop()}
        while new:
            part |= new
            new = set(np.flatnonzero(close[list(new)].any(axis=0)).tolist()) - part
        unseen -= part
        parts |= {frozenset(part)} if len(part) > 1 else set()
    found = features.duplicates(threshold)
    groups = found["group"].to_numpy()
    rows = found["row"].to_numpy()
    assert {frozenset(rows[groups == group].tolist()) for group in set(groups)} == parts
    sizes = np.bincount(groups) if len(groups) else np.empty(0)
    assert (np.diff(sizes) <= 0).all()
