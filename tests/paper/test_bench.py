from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nouncut.errors import InputError
from nouncut.models.encoder import Encoder
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.bench.ablation import ablate, affinities, convergence, parameter_values
from nouncut.paper.bench.charts import Series, line_chart
from nouncut.paper.bench.encoding import encode_source, source_keys
from nouncut.paper.bench.figures import draw_ablation, draw_affinities, draw_convergence
from nouncut.paper.bench.files import slug, write_whole
from nouncut.paper.bench.results import Result, ResultFolder
from nouncut.paper.bench.run import Benchmark, Plan, _fill_table, _measure_times
from nouncut.paper.bench.subject import Subject, Workshop, filter_templates
from nouncut.paper.bench.writing import times_markdown
from nouncut.paper.datasets.dataset import FileImages
from nouncut.paper.datasets.registry import load_dataset
from nouncut.paper.tables.layouts import keep_methods, method_layout, table_layout
from nouncut.report.drawing import Line
from nouncut.store.store import FeatureStore
from nouncut.words.prompts import PROMPTS

WORDS = ("red", "green", "blue", "cat", "dog", "sea", "door", "rose", "reds", "ship", "tree", "sun")


class Colours(Encoder):
    """An image is its mean colour, a text what its hash says; colours' names mean themselves."""

    name, fingerprint = "colours", "colours-1"
    image_dim = text_dim = 8
    tau = 0.2

    def __init__(self):
        self.n_images = self.n_texts = 0

    def prepare(self, image):
        pixels = np.asarray(image.resize((8, 8)), dtype=np.float32) / 255
        return np.ascontiguousarray(pixels.transpose(2, 0, 1))

    def encode_prepared(self, batch):
        self.n_images += len(batch)
        rows = np.zeros((len(batch), self.image_dim), dtype=np.float32)
        rows[:, :3] = batch.mean(axis=(2, 3))
        rows[:, 3:] = 0.05 * batch[:, 0, 0, :5]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_texts(self, texts):
        self.n_texts += len(texts)
        rows = np.stack([self._text(text) for text in texts])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _text(self, text):
        digest = hashlib.sha256(text.encode()).digest()
        row = np.frombuffer(digest[: self.text_dim], dtype=np.uint8) / 255
        for place, colour in enumerate(("red", "green", "blue")):
            row = row + 3 * (colour in text) * np.eye(self.text_dim)[place]
        return row.astype(np.float32)


@pytest.fixture
def workshop(tmp_path):
    store = FeatureStore(tmp_path / "cache")
    return Workshop(Colours(), WORDS, PROMPTS, store, tmp_path / "out")


@pytest.fixture
def colours(tmp_path, make):
    """Return a data set of three colours, which nouns can name."""
    for part, n in (("train", 10), ("test", 15)):
        make.folders(tmp_path / "colours" / part, "red", "green", "blue", n=n)
    # Folders are sorted by name; the colour goes by the order they were named in.
    return load_dataset(str(tmp_path / "colours"))


def plan(tmp_path, layout, **options):
    return Plan(layout, ("colours",), ("colours",), tmp_path / "out", **{"seeds": 2, **options})


def test_images_are_encoded_once_and_broken_ones_left_out(tmp_path, workshop, make):
    make.folders(tmp_path / "photos", "a", "b")
    (tmp_path / "photos/a/broken.png").write_bytes(b"")
    dataset = load_dataset(str(tmp_path / "photos"))
    subject = Subject(dataset, workshop)
    assert workshop.encoder.n_images == 4
    assert subject.n_skipped == 1
    assert subject.labels.tolist() == [0, 0, 1, 1]
    Subject(dataset, workshop)
    assert workshop.encoder.n_images == 4


def test_nothing_to_encode_is_an_error(tmp_path, workshop):
    path = tmp_path / "broken.png"
    path.write_bytes(b"")
    source = FileImages((path,))
    keys = source_keys(source, tmp_path)
    with pytest.raises(InputError, match="the file is empty"):
        encode_source(source, keys, workshop.encoder, workshop.store)


def test_keys_are_read_again_only_when_files_change(tmp_path, make):
    make.folders(tmp_path / "photos", "a", n=3)
    source = FileImages(tuple(sorted((tmp_path / "photos").rglob("*.png"))))
    calls = []
    first = source_keys(source, tmp_path / "keys", lambda *call: calls.append(call))
    again = source_keys(source, tmp_path / "keys", lambda *call: calls.append(call))
    assert first == again == [source.key(i) for i in range(3)]
    assert len(calls) == 1
    make.picture(source.paths[0], size=(50, 20))
    assert source_keys(source, tmp_path / "keys") != first


def test_nouns_are_chosen_by_the_training_part(workshop, colours):
    subject = Subject(colours, workshop)
    problem = subject.problem(0)
    assert len(problem.visual) == 45
    assert problem.n_clusters == 3
    assert len(problem.nouns) == len(PROMPTS)
    assert problem.candidates.shape == (len(WORDS), 8)
    assert problem.class_features.shape == (3, 8)
    assert problem.tau == 0.2
    kept = [json.loads(path.read_text()) for path in (workshop.output / "nouns").iterdir()]
    assert {"red", "green", "blue"} <= set(kept[0]["nouns"])
    n_texts = workshop.encoder.n_texts
    subject.problem(0)
    assert workshop.encoder.n_texts == n_texts


def test_without_class_names_no_noun_is_a_class(workshop, colours):
    subject = Subject(colours, workshop)
    problem = subject.problem(0, "without class names")
    # red, green, blue, and the plural "reds".
    assert len(problem.candidates) == len(WORDS) - 4
    kept = [json.loads(path.read_text())["nouns"] for path in (workshop.output / "nouns").iterdir()]
    assert {"red", "reds", "green", "blue"}.isdisjoint(kept[0])


def test_facts_change_with_all_that_decides_a_result(tmp_path, workshop, colours, make):
    facts = Subject(colours, workshop).facts(0)
    subject = Subject(colours, replace(workshop, words=WORDS[:5]))
    other_words = subject.facts(0)
    make.picture(colours.test.place(0), 1)
    other_image = Subject(colours, workshop).facts(0)
    other_seed = Subject(colours, workshop).facts(1)
    texts = {json.dumps(one) for one in (facts, other_words, other_image, other_seed)}
    assert len(texts) == 4


def test_a_table_is_filled_and_filled_once(tmp_path, workshop, colours):
    layout = keep_methods(table_layout("rad"), ["ours", "tac-kmeans"])
    found = Benchmark()
    table = _fill_table(plan(tmp_path, layout), [colours], workshop, found)
    assert (found.n_computed, found.n_kept) == (4, 0)
    ours = table.rows[-1]
    assert ours.cells["colours", "ACC"].mean == 100
    assert len(ours.cells["colours", "ACC"].measured) == 2
    again = Benchmark()
    assert _fill_table(plan(tmp_path, layout), [colours], workshop, again) == table
    assert (again.n_computed, again.n_kept) == (0, 4)
    more = Benchmark()
    _fill_table(plan(tmp_path, layout, seeds=3), [colours], workshop, more)
    assert (more.n_computed, more.n_kept) == (2, 4)
    afresh = Benchmark()
    _fill_table(plan(tmp_path, layout, again=True), [colours], workshop, afresh)
    assert (afresh.n_computed, afresh.n_kept) == (4, 0)


def test_a_result_that_was_lost_is_computed_again_and_is_the_same(tmp_path, workshop, colours):
    layout = keep_methods(table_layout("rad"), ["ours", "tac-kmeans"])
    table = _fill_table(plan(tmp_path, layout), [colours], workshop, Benchmark())
    lost = sorted((tmp_path / "out/results").rglob("*.json"))[::2]
    for path in lost:
        path.unlink()
    found = Benchmark()
    again = _fill_table(plan(tmp_path, layout), [colours], workshop, found)
    assert found.n_computed == len(lost) == 2
    assert [row.cells for row in again.rows] == [row.cells for row in table.rows]


def test_the_leak_table_runs_both_vocabularies(tmp_path, workshop, colours):
    found = Benchmark()
    table = _fill_table(plan(tmp_path, table_layout("leak"), seeds=1), [colours], workshop, found)
    assert [row.cells["colours", "ACC"].mean is not None for row in table.rows] == [True, True]
    assert found.n_computed == 2


def test_every_method_runs_on_a_problem_of_the_bench(workshop, colours):
    problem = Subject(colours, workshop).problem(0, with_gradnorm=True)
    for method in METHODS.values():
        if not method.needs_torch:
            assert method.fit_predict(problem, 0).shape == (45,)


def test_times_are_measured_by_stage(tmp_path, workshop, colours):
    layout = table_layout("time")
    (times,) = _measure_times(plan(tmp_path, layout, seeds=1), [colours], workshop)
    assert (times.n_images, times.n_clusters) == (45, 3)
    assert all(seconds >= 0 for seconds in times.seconds.values())
    assert sum(times.seconds.values()) > 0
    (again,) = _measure_times(plan(tmp_path, layout, seeds=1), [colours], workshop)
    assert again == times
    assert "published, A100" in times_markdown([times])


@pytest.mark.parametrize("parameter", ["tau", "q", "mu", "lambda"])
def test_a_parameter_is_varied(workshop, colours, parameter):
    subject = Subject(colours, workshop)
    curve = ablate(subject, workshop, parameter, seeds=1)
    assert curve.scores.shape == (len(curve.values), 1, 3)
    assert curve.default in curve.values
    assert len(curve.records()) == 3 * len(curve.values)
    before = sorted((workshop.output / "results").rglob("*.json"))
    np.testing.assert_array_equal(ablate(subject, workshop, parameter, 1).scores, curve.scores)
    assert sorted((workshop.output / "results").rglob("*.json")) == before


def test_a_temperature_of_its_own_is_the_middle_of_the_curve(workshop, colours):
    problem = replace(Subject(colours, workshop).problem(0), tau=None)
    values, default = parameter_values("tau", problem)
    assert default in values
    assert values[0] < default < values[-1]


def test_the_diffusion_never_rises(workshop, colours):
    subject = Subject(colours, workshop)
    found = convergence(subject.problem(0), subject.labels)
    assert np.all(np.diff(found.objective) <= 1e-6 * abs(found.objective[0]))
    assert len(found.nmi) == len(found.objective)


def test_affinities_are_sorted_by_class(workshop, colours):
    subject = Subject(colours, workshop)
    for matrix in affinities(subject.problem(0), subject.labels).values():
        assert matrix.shape == (45, 45)
        assert 0 <= matrix.min() <= matrix.max() <= 1
        same = np.equal.outer(np.sort(subject.labels), np.sort(subject.labels))
        assert matrix[same].mean() > matrix[~same].mean()


def test_prompts_of_the_filter_depend_on_the_model(workshop):
    assert filter_templates(workshop.encoder) == PROMPTS
    assert filter_templates(workshop.encoder, quick=True) == ("{}",)


def test_results_are_found_by_all_their_facts(tmp_path):
    folder = ResultFolder(tmp_path)
    facts = {"dataset": "../a/b", "model_name": "ViT-B/32", "method": "ours", "seed": 0}
    folder.write(facts, Result(0.1, 0.2, 0.3, 4.0))
    (path,) = tmp_path.rglob("*.json")
    assert path.relative_to(tmp_path).parts[:2] == ("a-b", "ViT-B-32")
    assert folder.read(facts) == Result(0.1, 0.2, 0.3, 4.0)
    assert folder.read({**facts, "seed": 1}) is None


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("name", ["..", "", "/", "\udce9", "é\n", "a" * 300])
def test_slugs_are_plain_names(name):
    plain = slug(name)
    assert plain.isascii()
    assert 0 < len(plain) <= 60
    assert not plain.startswith(".")


def test_the_table_of_all_methods_leaves_single_prompts_out():
    names = [row.method for row in method_layout().rows]
    assert "ours" in names
    assert not [name for name in names if "-prompt-" in name]


def test_figures_are_drawn_as_svg_and_png(workshop, colours):
    subject = Subject(colours, workshop)
    paths = [
        *draw_ablation(subject, workshop, "q", seeds=1),
        *draw_convergence(subject, workshop),
        *draw_affinities(subject, workshop),
    ]
    assert [path.name for path in paths] == [
        "q-colours-colours.svg",
        "q-colours-colours.png",
        "q-colours-colours.csv",
        "convergence-colours-colours.svg",
        "convergence-colours-colours.png",
        "convergence-colours-colours.csv",
        "affinity-colours-colours.svg",
        "affinity-colours-colours.png",
    ]
    for path in paths:
        if path.suffix == ".svg":
            assert ElementTree.fromstring(path.read_text()).tag.endswith("svg")
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert len(set(image.convert("L").tobytes())) > 2


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12),
    st.floats(0, 1e3),
)
@settings(max_examples=30, deadline=None)
def test_a_chart_keeps_its_lines_on_the_sheet(values, deviation):
    series = [
        Series("a", values, [deviation] * len(values)),
        Series("b", [0.0] * len(values), on_the_right=True),
    ]
    chart = line_chart("<title>", "x", [str(value) for value in values], series, mark=0)
    points = [point for shape in chart.shapes if isinstance(shape, Line) for point in shape.points]
    assert all(0 <= x <= chart.width and 0 <= y <= chart.height for x, y in points)
