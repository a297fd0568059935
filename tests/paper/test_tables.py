from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from nouncut.errors import ParameterError
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.datasets.catalog import KNOWN
from nouncut.paper.published import METRICS, TableName, published_values
from nouncut.paper.scores import Result
from nouncut.paper.tables.paper_tables import (
    Row,
    keep_methods,
    method_layout,
    table_layout,
    without_related_words,
)
from nouncut.paper.tables.score_table import AVERAGE, Column, build_table
from nouncut.paper.tables.significance import compare_methods, signed_rank, significance_table
from nouncut.paper.tables.table_text import csv_text, latex, markdown, records

TABLES = get_args(TableName)
DATASETS = ["STL-10", "CIFAR-10", "CIFAR-20", "ImageNet-10", "ImageNet-Dogs", "DTD"]


def build(layout, model, datasets, measured):
    """Build a table whose data sets have the paper's names."""
    return build_table(layout, model, [Column(name, name) for name in datasets], measured)


def fill(layout, datasets=DATASETS, n_seeds=3):
    """Return made measurements of every row that is run; ours is the best throughout."""
    rng = np.random.default_rng(0)
    measured = {}
    for dataset in datasets:
        for row in layout.rows:
            if row.method:
                bonus = 0.2 if row.method == "ours" else 0.0
                measured[dataset, row] = [
                    Result(*(rng.uniform(0.5, 0.6, 3) + bonus), seconds=1.0) for _ in range(n_seeds)
                ]
    return measured


@pytest.mark.parametrize("name", TABLES)
def test_every_table_runs_methods_that_exist_on_data_sets_that_exist(name):
    layout = table_layout(name)
    assert {row.method for row in layout.rows} - {None} <= set(METHODS)
    assert set(layout.datasets) <= set(KNOWN)
    assert len(set(layout.rows)) == len(layout.rows)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("time", "wilcoxon")])
def test_every_published_value_of_a_table_has_its_cell(name):
    """All values of the paper appear, for the table's own models and data sets."""
    layout = table_layout(name)
    titles = [KNOWN[dataset].title for dataset in layout.datasets]
    shown = []
    for model in layout.models:
        table = build(layout, model, titles, {})
        shown += [
            cell.published
            for row in table.rows
            for (dataset, _), cell in row.cells.items()
            if dataset != "Average" and cell.published is not None
        ]
    expected = [
        value.value
        for value in published_values()
        if value.table in layout.published and value.dataset != "Average"
    ]
    assert sorted(shown) == sorted(expected)


def test_averages_agree_with_the_papers():
    layout = table_layout("rad")
    table = build(layout, "ViT-B/32", [KNOWN[name].title for name in layout.datasets], {})
    averages = {
        (value.method, value.metric): value.value
        for value in published_values()
        if value.table == "tab:RAD" and value.dataset == "Average"
    }
    for row in table.rows:
        for metric in METRICS:
            ours = row.cells["Average", metric].published
            assert ours == pytest.approx(averages[row.row.title, metric], abs=0.11)


def test_methods_from_pixels_are_published_only():
    layout = table_layout("classic")
    by_title = {row.title: row.method for row in layout.rows}
    assert [by_title[name] for name in ("DAC", "SCAN", "ProPos")] == [None, None, None]
    assert by_title["Ours"] == "ours"
    text = markdown(build(layout, "mini", ["CIFAR-10"], {}))
    assert "| DAC (published only) | - | 39.6 |" in text


def test_the_head_called_scan_is_not_the_network_called_scan():
    row = Row("SCAN", "scan", "SCAN")
    layout = replace(method_layout(["ours"]), rows=(row,))
    on_cifar, on_dtd = (
        build(layout, "mini", [dataset], {}).rows for dataset in ("CIFAR-10", "DTD")
    )
    assert on_cifar == ()
    assert on_dtd[0].cells["DTD", "ACC"].published is not None


def test_cells_hold_mean_and_deviation_over_seeds():
    layout = table_layout("rad")
    results = [Result(0.8, *run) for run in ((0.90, 0.7, 1.0), (0.92, 0.7, 2.0), (0.94, 0.7, 3.0))]
    measured = {("CIFAR-10", layout.rows[-1]): results}
    row = build(layout, "ViT-B/32", ["CIFAR-10"], measured).rows[-1]
    cell = row.cells["CIFAR-10", "ACC"]
    assert cell.mean == pytest.approx(92)
    assert cell.deviation == pytest.approx(2)
    assert cell.published == 92.0
    assert row.seconds == 2.0


def test_published_values_belong_to_the_model():
    layout = table_layout("encoders")
    found = {
        model: build(layout, model, ["DTD"], {}).rows[-1].cells["DTD", "ACC"].published
        for model in ("ViT-B/16", "ViT-L/14", "mini")
    }
    assert found == {"ViT-B/16": 55.8, "ViT-L/14": 58.0, "mini": 55.8}


def test_markdown_is_a_table_with_a_column_for_published_values():
    layout = table_layout("rad")
    table = build(layout, "ViT-B/32", DATASETS, fill(layout))
    lines = [line for line in markdown(table).splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert lines[0].startswith("| method | STL-10 NMI | published |")
    assert lines[-1].startswith("| Ours (RAD) | **")
    assert " ± " in lines[-1]


def test_data_sets_of_ones_own_have_no_published_column():
    layout = table_layout("rad")
    table = build(layout, "mini", ["my photos"], fill(layout, ["my photos"], 1))
    text = markdown(table)
    assert "ublished" not in text
    assert " ± " not in text
    assert len(table.rows) == 5


def test_names_cannot_break_a_table():
    layout = table_layout("rad")
    name = "a|b <script>_&%"
    table = build(layout, name, [name], fill(layout, [name], 1))
    lines = [line for line in markdown(table).splitlines() if line.startswith("|")]
    assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1
    assert "<script>" not in markdown(table)
    assert r"\_\&\%" in latex(table)


def test_latex_has_as_many_columns_as_it_says():
    layout = table_layout("kernels")
    text = latex(build(layout, "ViT-B/32", DATASETS, fill(layout)))
    columns = text.split(r"\begin{tabular}{")[1].split("}")[0]
    rows = [line for line in text.splitlines() if " & " in line]
    assert {line.count(" & ") + 1 for line in rows} == {len(columns)}
    assert text.count(r"\multicolumn") == 2


def test_csv_has_a_line_per_number():
    layout = table_layout("leak")
    table = build(layout, "ViT-B/32", ["CIFAR-10"], fill(layout, ["CIFAR-10"]))
    rows = list(csv.DictReader(io.StringIO(csv_text(records(table)))))
    assert len(rows) == len(layout.rows) * len(METRICS)
    assert {row["vocabulary"] for row in rows} == {"full", "without class names"}
    assert float(rows[0]["published"]) == 83.3


def test_methods_can_be_chosen():
    layout = keep_methods(table_layout("classic"), ["ours"])
    assert [row.method for row in layout.rows if row.method] == ["ours"]
    assert any(row.method is None for row in layout.rows)
    with pytest.raises(ParameterError, match="'hers', which is no method"):
        keep_methods(table_layout("classic"), ["hers"])
    with pytest.raises(ParameterError, match="tac-kmeans"):
        keep_methods(table_layout("rad"), ["clip-kmeans"])
    with pytest.raises(ParameterError, match="Choose from: clip"):
        method_layout(["hers"])
    assert {row.method for row in method_layout().rows} == {
        m for m in METHODS if "-prompt-" not in m
    }


def test_the_signed_rank_test_finds_a_method_that_always_wins():
    layout = table_layout("rad")
    table = build(layout, "ViT-B/32", DATASETS, fill(layout))
    found = compare_methods(table)
    assert [one.title for one in found] == ["TAC (KMeans)", "TAC (SC)", "Ours (naive)", "Ours (PE)"]
    # Six wins of six: two of 2^6 sign patterns are as extreme.
    assert [one.p_value for one in found] == pytest.approx([2 / 64] * 4)
    assert "0.0312" in markdown(table)
    few = build(layout, "ViT-B/32", DATASETS[:2], fill(layout, DATASETS[:2]))
    assert "cannot give p < 0.05" in markdown(few)


# Ties make SciPy try every pattern of signs.
@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=7))
def test_the_signed_rank_test_is_a_probability_and_symmetric(pairs):
    ours, others = zip(*pairs, strict=True)
    p_value = signed_rank(ours, others)
    assert 0 < p_value <= 1
    assert p_value == pytest.approx(signed_rank(others, ours))


def test_columns_are_told_apart_by_their_titles():
    """Two data sets that the paper calls the same, or not at all, keep their own scores."""
    layout = table_layout("shift")
    ours = layout.rows[-1]
    columns = [Column("ImageNet-C/gaussian_noise/1", "ImageNet-C"), Column("ImageNet-C/fog/3")]
    measured = {
        (column.title, ours): [Result(score, score, score, seconds=1.0)]
        for column, score in zip(columns, (0.5, 0.25), strict=True)
    }
    table = build_table(layout, "ViT-B/32", columns, measured)
    cells = table.rows[-1].cells
    found = [cells[column.title, "ACC"] for column in (*columns, AVERAGE)]
    assert [cell.mean for cell in found] == [50, 25, 37.5]
    assert [cell.published for cell in found] == [44.0, None, None]
    text = markdown(table)
    assert "| ImageNet-C/gaussian_noise/1 NMI | published |" in text
    assert "| ImageNet-C/fog/3 NMI | ImageNet-C/fog/3 ACC |" in text


def test_related_words_have_a_row_of_their_own():
    layout = without_related_words(table_layout("leak"))
    assert [row.vocabulary for row in layout.rows] == ["without related words", "full"]
    table = build(layout, "ViT-B/32", ["CIFAR-10"], {})
    assert table.rows[0].cells["CIFAR-10", "ACC"].published == 91.8
    assert without_related_words(table_layout("rad")) == table_layout("rad")


@pytest.mark.parametrize("model", ["OpenCLIP-ViT-B/32-400M", "OpenCLIP-ViT-B/32"])
def test_both_openclip_models_stand_beside_the_papers_values(model):
    layout = table_layout("openclip")
    assert layout.models == ("OpenCLIP-ViT-B/32-400M",)
    table = build(layout, model, ["DTD"], {})
    assert table.backbone == "OpenCLIP ViT-B/32"
    assert table.rows[-1].cells["DTD", "ACC"].published == 56.4


def test_the_significance_table_recomputes_the_papers():
    layout = table_layout("wilcoxon")
    found = {one.title: one for one in significance_table(build(layout, "ViT-B/32", [], {}))}
    assert found["TAC (KMeans)"].from_published == pytest.approx(
        found["TAC (KMeans)"].printed, abs=1e-4
    )
    # The paper prints a tenth of what its own values give, and leaves GradNorm out.
    assert found["SIC"].printed == 0.0039
    assert found["SIC"].from_published == pytest.approx(0.0391, abs=1e-4)
    assert found["GradNorm"].printed is None
    assert found["GradNorm"].from_published == pytest.approx(0.4688, abs=1e-4)
    assert {one.measured for one in found.values()} == {None}
    table = build(layout, "ViT-B/32", DATASETS, fill(layout))
    for one in significance_table(table):
        assert (one.measured, one.n_measured) == (pytest.approx(2 / 64), 6)
        assert one.from_published == found[one.title].from_published


def test_the_papers_p_values_follow_from_its_tables():
    """0.0078 against k-means, as the paper's test of NMI over eight data sets says."""
    layout = table_layout("kernels")
    table = build(layout, "ViT-B/32", [KNOWN[name].title for name in layout.datasets], {})
    nmi = {
        row.row: [row.cells[name, "NMI"].published for name in table.datasets] for row in table.rows
    }
    ours = next(values for row, values in nmi.items() if row.title == "Ours")
    clip = next(values for row, values in nmi.items() if row.method == "clip-kmeans")
    assert signed_rank(ours, clip) == pytest.approx(0.0078, abs=1e-4)
    assert signed_rank(ours, clip) == pytest.approx(wilcoxon(ours, clip).pvalue)
