from __future__ import annotations

import io
import re
from base64 import b64decode
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from scipy.sparse import csr_array

from nouncut.errors import OutputError
from nouncut.report.affinity_matrix import draw_affinities
from nouncut.report.drawing import Cells, Text
from nouncut.report.figures import method_figures, save_figures
from nouncut.runs.tables import images_table

SVG = "{http://www.w3.org/2000/svg}"
ALL = ["affinity", "diffusion", "eigenvalues", "cluster-count"]
HOSTILE = 'a "photo" of <script>alert(1)</script> & \x00\ud800\n{}'


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in parsed(svg).iter(f"{SVG}text")]


def matrices(svg: str) -> list[np.ndarray]:
    found = re.findall(r"data:image/png;base64,([^\"]+)", svg)
    return [np.asarray(Image.open(io.BytesIO(b64decode(data)))) for data in found]


def by_name(run) -> dict:
    return {figure.name: figure for figure in method_figures(run)}


def test_all_figures_of_a_run(small_run):
    figures = method_figures(small_run)
    assert [figure.name for figure in figures] == ALL
    for figure in figures:
        root = parsed(figure.svg)
        assert root.get("viewBox").startswith("0 0 480 ")
        assert root.get("aria-label") == figure.title
        assert figure.caption.endswith(".")
        assert figure.caption.count(".") == 1


def test_the_page_colours_figures_and_its_policy_allows_them(small_run):
    for figure in method_figures(small_run):
        assert "var(--" in figure.svg
        # The page's policy permits no styles in attributes and nothing from elsewhere.
        assert "style" not in figure.svg
        assert set(re.findall(r'href="([^:]+):', figure.svg)) <= {"data"}


def test_ids_are_unique_within_a_page(small_run):
    page = "".join(figure.svg for figure in method_figures(small_run))
    names = re.findall(r' id="([^"]+)"', page)
    assert len(names) == len(set(names)) == 2
    assert set(re.findall(r"url\(#([^)]+)\)", page)) == set(names)


def test_the_matrix_is_sorted_by_cluster(small_run):
    with_nouns, by_looks = matrices(by_name(small_run)["affinity"].svg)
    assert with_nouns.shape == by_looks.shape == (24, 24)
    ends = [0, 12, 20, 24]
    for first, last in pairwise(ends):
        block = with_nouns[first:last, first:last].astype(float)
        assert (block[~np.eye(len(block), dtype=bool)] > 0).all()
        assert (np.diag(block) == 0).all()
    # One link leads from the first cluster to the last.
    assert np.argwhere(with_nouns[:12, 12:]).tolist() == [[0, 11]]


def test_many_images_share_cells(write_run, tmp_path, monkeypatch):
    monkeypatch.setattr("nouncut.report.affinity_matrix._MAX_CELLS", 6)
    monkeypatch.setattr("nouncut.report.affinity_matrix._MAX_ROWS", 10)
    labels = np.repeat([0, 1], [30, 15])
    same = csr_array((labels[:, None] == labels).astype(float))
    noise = 0.01 * np.random.default_rng(0).random((45, 2))
    run = write_run(
        tmp_path / "run",
        images_table([f"{row}.jpg" for row in range(45)]),
        labels,
        {"prompts": [{"template": "{}", "weight": 1.0}], "n_neighbors": 4},
        {
            "features": np.eye(2)[labels] + noise,
            **{f"graph_{part}": getattr(same, part) for part in ("data", "indices", "indptr")},
        },
    )
    drawing, _ = draw_affinities(run)
    cells = [shape for shape in drawing.shapes if isinstance(shape, Cells)]
    assert len(cells) == 2
    for one in cells:
        assert one.strength.shape == (6, 6)
        assert (one.strength[:4, 4:] == 0).all()
        assert (one.strength[4:, :4] == 0).all()
        assert (one.strength[:4, :4] > 0).any()
    shares = [shape.text for shape in drawing.shapes if isinstance(shape, Text)]
    assert shares.count("100% within groups") == 2


@pytest.mark.parametrize(
    ("manifest", "missing"),
    [
        ({"cluster_count": None}, {"cluster-count"}),
        ({"eigenvalues": []}, {"eigenvalues"}),
        ({"eigenvalues": [1.0]}, {"eigenvalues"}),
        ({"objective": [], "prompts": []}, {"diffusion"}),
        ({"objective": None, "prompts": None, "eigenvalues": None}, {"diffusion", "eigenvalues"}),
        ({"objective": [3.0]}, set()),
        ({"prompts": [{"template": "{}", "weight": 1.0}]}, set()),
        ({"cluster_count": {"n_clusters": 3, "candidates": [[3, 0.5]]}}, {"cluster-count"}),
    ],
)
def test_figures_without_numbers_are_left_out(make_run, tmp_path, manifest, missing):
    run = make_run(tmp_path / "run", manifest=manifest)
    assert set(by_name(run)) == set(ALL) - missing


def test_a_run_without_nouns_has_one_matrix(make_run, tmp_path):
    run = make_run(tmp_path / "run", manifest={"prompts": []}, source_kind="features")
    assert len(matrices(by_name(run)["affinity"].svg)) == 1


@pytest.mark.parametrize("labels", [[], [0], [0, 0, 0], [0, 0, 1]], ids=str)
def test_small_runs_without_arrays(write_run, tmp_path, labels):
    images = images_table([f"{row}.jpg" for row in range(len(labels))])
    run = write_run(tmp_path / "run", images, labels)
    assert method_figures(run) == []
    assert save_figures(run, tmp_path / "figures") == []


def test_one_cluster_has_no_matrix(make_run, tmp_path):
    run = make_run(tmp_path / "run")
    run.manifest["n_clusters"] = 1
    assert draw_affinities(run) is None


def test_weights_per_step(make_run, tmp_path):
    steps = [[0.5, 0.5], [0.6, 0.4], [0.75, 0.25]]
    run = make_run(tmp_path / "run", manifest={"weight_steps": steps})
    curves = list(parsed(by_name(run)["diffusion"].svg).iter(f"{SVG}polyline"))
    colours = {curve.get("stroke") for curve in curves}
    assert len({colour for colour in colours if not colour.startswith("var")}) == 2


def test_a_single_step_is_no_curve(make_run, tmp_path):
    one = {"weight_steps": [[0.6, 0.4]], "objective": [3.0]}
    figure = by_name(make_run(tmp_path / "run", manifest=one))["diffusion"]
    assert not list(parsed(figure.svg).iter(f"{SVG}polyline"))
    assert figure.caption.startswith("One step")


def test_hostile_prompts_are_text(make_run, tmp_path):
    prompts = [
        {"template": HOSTILE[:40], "weight": 0.5},
        {"template": "\x1b[0m" * 99, "weight": 0.5},
    ]
    # The manifest is JSON, which has no lone surrogates.
    prompts[0]["template"] = prompts[0]["template"].encode("utf-8", "replace").decode()
    run = make_run(tmp_path / "run", manifest={"prompts": prompts})
    svg = by_name(run)["diffusion"].svg
    assert "<script" not in svg
    assert any("<script>" in text for text in texts(svg))
    save_figures(run, tmp_path / "figures")


def test_chosen_numbers_are_marked(make_run, tmp_path):
    run = make_run(tmp_path / "run", manifest={"eigenvalues": [1.0, 0.99, 0.98, 0.5, 0.4]})
    figure = by_name(run)["eigenvalues"]
    assert "K = 3" in texts(figure.svg)
    assert "steep fall after the first 3" in figure.caption
    count = by_name(run)["cluster-count"]
    assert texts(count.svg)[1::2] == ["2 groups", "3 groups"]


def test_figures_are_saved(small_run, tmp_path):
    folder = tmp_path / "new" / "figures"
    saved = save_figures(small_run, folder)
    assert [path.name for path in saved] == [f"{n}.{s}" for n in ALL for s in ("svg", "png")]
    assert sorted(saved) == sorted(folder.iterdir())
    for vector, pixels in zip(saved[::2], saved[1::2], strict=True):
        root = parsed(vector.read_text(encoding="utf-8"))
        # Other programs than browsers know no variables.
        assert "var(" not in vector.read_text(encoding="utf-8")
        with Image.open(pixels) as picture:
            assert picture.width == round(3 * float(root.get("width")))
            assert picture.height == pytest.approx(3 * float(root.get("height")), abs=1)
            assert len(picture.convert("RGB").getcolors(10**6)) > 10


def test_a_folder_that_cannot_be_made_is_named(small_run, tmp_path):
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(OutputError, match=r"taken.*a file is in the way.*choose another folder"):
        save_figures(small_run, tmp_path / "taken")
