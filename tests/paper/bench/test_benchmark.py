from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sklearn.metrics import adjusted_rand_score

from nouncut.errors import ModelError
from nouncut.method import ensemble
from nouncut.paper import optional_packages
from nouncut.paper.baselines.ours import fit_ours
from nouncut.paper.bench.benchmark import Benchmark, Plan, fill_table, measure_times, run_benchmark
from nouncut.paper.bench.columns import DataColumn, load_columns
from nouncut.paper.bench.stage_times import STAGES, run_stages
from nouncut.paper.bench.write_tables import benchmark_markdown, describe_run, times_markdown
from nouncut.paper.published import METRICS
from nouncut.paper.tables.paper_tables import keep_methods, method_layout, table_layout
from nouncut.paper.tables.score_table import Column
from nouncut.words.prompts import PROMPTS


def column(dataset, title="colours"):
    return DataColumn.of_one(Column(title), dataset)


def plan(setup, layout, **options):
    return Plan(layout, ("colours",), ("colours",), setup.output, **{"seeds": 2, **options})


def fill(setup, colours, layout, **options):
    """Fill a table and return it with the numbers of computed and kept results."""
    found = Benchmark()
    table = fill_table(plan(setup, layout, **options), [column(colours)], setup, found)
    return table, (found.n_computed, found.n_kept)


def test_a_table_is_filled_and_filled_once(setup, colours):
    layout = keep_methods(table_layout("rad"), ["ours", "tac-kmeans"])
    table, counts = fill(setup, colours, layout)
    assert counts == (4, 0)
    ours = table.rows[-1]
    assert ours.cells["colours", "ACC"].mean == 100
    assert len(ours.cells["colours", "ACC"].measured) == 2
    assert fill(setup, colours, layout) == (table, (0, 4))
    assert fill(setup, colours, layout, seeds=3)[1] == (2, 4)
    assert fill(setup, colours, layout, again=True)[1] == (4, 0)


def test_a_result_that_was_lost_is_computed_again_and_is_the_same(setup, colours):
    layout = keep_methods(table_layout("rad"), ["ours", "tac-kmeans"])
    table, _ = fill(setup, colours, layout)
    lost = sorted((setup.output / "results").rglob("*.json"))[::2]
    for path in lost:
        path.unlink()
    again, counts = fill(setup, colours, layout)
    assert counts == (2, 2)
    assert [row.cells for row in again.rows] == [row.cells for row in table.rows]


def test_the_leak_table_runs_both_vocabularies(setup, colours):
    table, counts = fill(setup, colours, table_layout("leak"), seeds=1)
    assert [row.cells["colours", "ACC"].mean is not None for row in table.rows] == [True, True]
    assert counts == (2, 0)


def test_a_classifier_also_shows_its_plain_accuracy(setup, colours):
    # Names that point at the wrong colours: all images are in a cluster, none in its class.
    turned = replace(colours, prompt_names=("green", "red", "blue"))
    assert colours.class_names == ("blue", "green", "red")
    layout = method_layout(["clip-zero-shot", "clip-kmeans"])
    for dataset, plain in ((colours, "100.0"), (turned, "0.0")):
        found = Benchmark()
        table = fill_table(plan(setup, layout, seeds=1), [column(dataset)], setup, found)
        assert table.rows[0].cells["colours", "ACC"].mean == 100
        (note,) = found.notes
        assert note.startswith("CLIP (zero-shot), colours: ACC of its labels as given")
        assert note.endswith(f"colours {plain}.")
        assert note in benchmark_markdown(found, describe_run("nouncut bench"))


def test_times_are_measured_by_stage_and_kept(setup, colours):
    timed = plan(setup, table_layout("time"), seeds=1)
    (times,) = measure_times(timed, [column(colours)], setup)
    assert (times.n_images, times.n_clusters) == (45, 3)
    assert all(seconds > 0 for seconds in times.seconds.values())
    assert list(measure_times(timed, [column(colours)], setup)) == [times]
    assert "published, A100" in times_markdown([times])


def test_training_without_torch_says_what_to_install(setup, monkeypatch):
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r'scan needs torch: pip install "nouncut\[paper\]"'):
        run_benchmark(plan(setup, method_layout(["ours", "scan"])))
    with pytest.raises(
        ModelError, match=r'umap-hdbscan needs umap: pip install "nouncut\[paper\]"'
    ):
        run_benchmark(plan(setup, method_layout(["umap-hdbscan"])))


def test_data_sets_of_one_name_keep_their_own_scores(setup, tmp_path, make):
    """One folder is easy; the other has labels at random."""
    easy = make.folders(tmp_path / "a" / "photos", "red", "green", "blue", n=6)
    mixed = tmp_path / "b" / "photos"
    for number, image in enumerate(sorted(easy.rglob("*.png"))):
        to = mixed / ("one", "two", "three")[number % 3] / f"{number}.png"
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(image.read_bytes())
    columns = load_columns([str(easy), str(mixed)])
    layout = keep_methods(table_layout("rad"), ["tac-kmeans"])
    table = fill_table(plan(setup, layout), columns, setup, Benchmark())
    means = [table.rows[0].cells[name, "ACC"].mean for name in table.datasets]
    assert len(set(table.datasets)) == 2
    assert means[0] == 100
    assert means[1] < 60


def test_all_corruptions_are_one_mean_that_goes_on(setup, tmp_path, make):
    classes = ("n01440764", "n01443537", "n01484850")
    make.imagenet(tmp_path, *classes)
    for part in ("gaussian_noise/1", "fog/1"):
        make.folders(tmp_path / "ImageNet-C" / part, *classes, n=11)
    for number in range(33):
        # All of one colour.
        make.picture(tmp_path / f"ImageNet-C/snow/5/{classes[number % 3]}/{number}.png")
    layout = keep_methods(table_layout("shift"), ["ours", "tac-kmeans"])

    def fill_columns(*names):
        found = Benchmark()
        columns = load_columns(names, tmp_path)
        table = fill_table(plan(setup, layout), columns, setup, found)
        assert found.n_computed + found.n_kept == 12
        return table, found.n_computed

    names = [f"imagenet-c/{part}" for part in ("gaussian_noise/1", "fog/1", "snow/5")]
    separate, n_computed = fill_columns(*names)
    assert n_computed == 12
    ours = separate.rows[-1].cells
    assert ours["ImageNet-C/snow/5", "ACC"].mean < ours["ImageNet-C/fog/1", "ACC"].mean
    together, n_computed = fill_columns("imagenet-c/all")
    assert n_computed == 0
    assert together.datasets == ["ImageNet-C (mean of 3 of 75)"]
    for row, single in zip(together.rows, separate.rows, strict=True):
        for metric in METRICS:
            cell = row.cells["ImageNet-C (mean of 3 of 75)", metric]
            assert cell.measured == pytest.approx(single.cells["Average", metric].measured)
    (setup.output / "results").joinpath("ImageNet-C-fog-1").rename(tmp_path / "lost")
    again, n_computed = fill_columns("imagenet-c/all")
    assert n_computed == 4
    assert [row.cells for row in again.rows] == [row.cells for row in together.rows]
    # The same images choose the same nouns: one choice per seed.
    assert len(list((setup.output / "nouns").iterdir())) == 2


def test_a_single_prompt_chooses_its_own_nouns(setup, colours):
    layout = keep_methods(table_layout("prompts"), ["ours-prompt-3", "tac-kmeans-prompt-5", "ours"])
    _, counts = fill(setup, colours, layout, seeds=1)
    assert counts == (3, 0)
    kept = [json.loads(path.read_text()) for path in (setup.output / "nouns").iterdir()]
    assert sorted(one["filter_templates"] for one in kept) == sorted(
        [list(PROMPTS), [PROMPTS[2]], [PROMPTS[4]]]
    )
    assert fill(setup, colours, layout, seeds=1)[1] == (0, 3)
    # With the nouns of all prompts, ours with all of them is there already.
    assert fill(setup, colours, layout, seeds=1, prompt_nouns="all")[1] == (2, 1)
    assert len(list((setup.output / "nouns").iterdir())) == 3


def test_mutual_neighbours_have_results_of_their_own(setup, colours, encoded):
    problem = encoded.problem(0)
    union, fewer = (fit_ours(replace(problem, neighbors=one), 0) for one in ("union", "mutual"))
    assert fewer.graph_.nnz < union.graph_.nnz
    layout = keep_methods(table_layout("rad"), ["ours"])
    assert fill(setup, colours, layout, seeds=1)[1] == (1, 0)
    mutual = replace(setup, neighbors="mutual")
    assert fill(mutual, colours, layout, seeds=1)[1] == (1, 0)
    assert fill(mutual, colours, layout, seeds=1)[1] == (0, 1)


@pytest.mark.parametrize("neighbors", ["union", "mutual"])
@pytest.mark.parametrize("exact_size", [500, 10])
def test_stages_one_by_one_give_our_labels(encoded, monkeypatch, neighbors, exact_size):
    monkeypatch.setattr(ensemble, "_EXACT_SIZE", exact_size)
    problem = replace(encoded.problem(0), neighbors=neighbors)
    labels, seconds = run_stages(problem, 0)
    assert adjusted_rand_score(labels, fit_ours(problem, 0).labels_) == 1
    assert tuple(seconds) == STAGES == ("graphs", "diffusion", "eigenvectors", "labels")
