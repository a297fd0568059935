from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from nouncut.errors import ModelError
from nouncut.paper import optional_packages
from nouncut.paper.bench.ablation import Convergence, Curve
from nouncut.paper.bench.plots import (
    check_matplotlib,
    convergence_figure,
    curve_figure,
    render,
    save_affinities,
    save_convergence,
    save_curve,
)

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: bytes) -> list[str]:
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_figures_are_saved_as_svg_and_png(encoded):
    paths = [
        *save_curve(encoded, "q", seeds=1),
        *save_convergence(encoded),
        *save_affinities(encoded),
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
            assert "colours" in texts(path.read_bytes())
        if path.name.startswith("affinity") and path.suffix == ".svg":
            captions = {f"{name} (NMI = 100.0 %)" for name in ("CLIP", "TAC", "Ours")}
            assert captions | {"affinity, relative"} <= set(texts(path.read_bytes()))
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert len(set(image.convert("L").tobytes())) > 2


def test_a_curve_shows_its_values_and_metrics_and_any_name():
    curve = Curve("tau", (0.02, 0.04), 0.04, np.full((2, 3, 3), 50.0))
    name = "$x_1$ <b>&\N{SNOWMAN} 日本"
    svg = render(curve_figure(name, curve), "svg", name)
    assert {name, "0.02", "0.04", "tau", "NMI", "ACC", "ARI"} <= set(texts(svg))
    assert render(curve_figure(name, curve), "svg", name) == svg


def test_a_small_set_may_not_reach_the_default():
    curve = Curve("q", (5, 10, 20), 30, np.full((3, 1, 3), 50.0))
    assert "20" in texts(render(curve_figure("few images", curve), "svg", ""))


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12),
    st.floats(0, 1e3),
)
@example([0.0], 0.0)
@settings(max_examples=15, deadline=None)
def test_limits_hold_all_values(values, spread):
    scores = np.add.outer(np.array(values), [-spread, spread])[..., None].repeat(3, axis=2)
    curve = Curve("mu", tuple(range(len(values))), 0, scores)
    (axes,) = curve_figure("", curve).axes
    low, high = axes.get_ylim()
    assert low < (curve.means - curve.deviations).min()
    assert high > (curve.means + curve.deviations).max()
    left, right = convergence_figure("", Convergence(tuple(values), tuple(values))).axes
    for axes in (left, right):
        low, high = axes.get_ylim()
        assert low < min(values) <= max(values) < high


def test_drawing_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r'matplotlib: pip install "nouncut\[paper\]"'):
        check_matplotlib()
