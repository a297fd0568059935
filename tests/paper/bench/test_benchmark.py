from __future__ import annotations

import pytest

from nouncut.errors import ModelError
from nouncut.paper import optional_packages
from nouncut.paper.bench.benchmark import Benchmark, Plan, fill_table, measure_times, run_benchmark
from nouncut.paper.bench.write_tables import times_markdown
from nouncut.paper.tables.paper_tables import keep_methods, method_layout, table_layout


def plan(setup, layout, **options):
    return Plan(layout, ("colours",), ("colours",), setup.output, **{"seeds": 2, **options})


def fill(setup, colours, layout, **options):
    """Fill a table and return it with the numbers of computed and kept results."""
    found = Benchmark()
    table = fill_table(plan(setup, layout, **options), [colours], setup, found)
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


def test_times_are_measured_by_stage_and_kept(setup, colours):
    timed = plan(setup, table_layout("time"), seeds=1)
    (times,) = measure_times(timed, [colours], setup)
    assert (times.n_images, times.n_clusters) == (45, 3)
    assert all(seconds > 0 for seconds in times.seconds.values())
    assert list(measure_times(timed, [colours], setup)) == [times]
    assert "published, A100" in times_markdown([times])


def test_training_without_torch_says_what_to_install(setup, monkeypatch):
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r'scan needs torch: pip install "nouncut\[paper\]"'):
        run_benchmark(plan(setup, method_layout(["ours", "scan"])))
    with pytest.raises(
        ModelError, match=r'umap-hdbscan needs umap: pip install "nouncut\[paper\]"'
    ):
        run_benchmark(plan(setup, method_layout(["umap-hdbscan"])))
