"""Drawings and the charts made of them."""

from xml.etree import ElementTree

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nouncut.report.charts import draw_bars, draw_curves, draw_spectrum
from nouncut.report.drawing import Bar, Cells, Dot, Drawing, Line, to_picture, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_svg_and_pixels_show_the_same():
    strength = np.array([[255, 0], [0, 255]], dtype=np.uint8)
    drawing = Drawing(
        40,
        20,
        (
            Bar(0, 0, 10, 10, "#ff0000"),
            Dot(30, 10, 5, "#00ff00"),
            Line(((0, 18), (20, 18)), "#0000ff", 2),
            Cells(10, 0, 10, strength, "cells", "#000000"),
        ),
    )
    picture = to_picture(drawing, scale=1)
    margin = 16
    for place, colour in {
        (5, 5): (255, 0, 0),
        (30, 10): (0, 255, 0),
        (10, 18): (0, 0, 255),
        (12, 2): (0, 0, 0),
        (17, 7): (0, 0, 0),
        (17, 2): (252, 252, 251),
    }.items():
        assert picture.getpixel((place[0] + margin, place[1] + margin)) == colour
    names = [node.tag.removeprefix(SVG) for node in ElementTree.fromstring(to_svg(drawing, ""))]
    assert names == ["rect", "circle", "polyline", "mask", "rect"]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80))
def test_curves_stay_within_their_chart(values):
    drawing = draw_curves([values], ["accent"], "title", "step")
    lines = [shape for shape in drawing.shapes if isinstance(shape, Line)]
    ys = [y for line in lines for _, y in line.points]
    assert min(ys) >= 29.9
    assert max(ys) <= drawing.height
    assert len(lines) <= 12
    ElementTree.fromstring(to_svg(drawing, "chart"))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.data())
def test_any_spectrum_can_be_drawn(values, data):
    chosen = data.draw(st.integers(1, len(values)))
    ElementTree.fromstring(to_svg(draw_spectrum(sorted(values, reverse=True), chosen), "chart"))


@given(st.lists(st.tuples(st.text(max_size=60), st.floats(0, 1e9)), min_size=1, max_size=9))
def test_bars_stay_within_their_chart(bars):
    names, lengths = zip(*bars, strict=True)
    drawing = draw_bars(names, lengths, ["1"] * len(bars), ["accent"] * len(bars), "title")
    assert all(s.x + s.width <= 480 for s in drawing.shapes if isinstance(s, Bar))
    ElementTree.fromstring(to_svg(drawing, "chart"))
