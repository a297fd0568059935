"""The map of many dots in a real browser: its index, its names by zoom, and its hooks."""

from __future__ import annotations

import numpy as np
import pytest

# What the index must find, by looking at every dot.
BRUTE_FORCE = """() => {
  let seed = 7;
  const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const rows = Array.from({ length: report.nImages }, (_, row) => row);
  const wrong = [];
  for (const zoom of [1, 3, 40]) {
    camera.fit();
    camera.zoomAt(900 * random(), 400 * random(), zoom);
    const view = camera.view();
    const places = rows.map((row) => points.position(view, row));
    for (let n = 0; n < 60; n++) {
      const [x, y, within] = [view.width * random(), view.height * random(), 60 * random()];
      const distance = (row) => (places[row][0] - x) ** 2 + (places[row][1] - y) ** 2;
      const nearest = rows.reduce((a, b) => (distance(b) <= distance(a) ? b : a));
      const expected = distance(nearest) <= within ** 2 ? nearest : -1;
      if (points.at(view, x, y, within) !== expected) wrong.push(["at", zoom, x, y, within]);
      const box = [x, y, x + 3 * within, y + within];
      const isInBox = ([a, b]) => a >= box[0] && a <= box[2] && b >= box[1] && b <= box[3];
      const [first, last, top, bottom] = dotGrid.cellsIn(view, box);
      const isSmall = last - first <= 8 || bottom - top <= 8;
      const [count, exact] = [dotGrid.count(view, box), places.filter(isInBox).length];
      if (isSmall ? count !== exact : count < exact) wrong.push(["count", zoom, count, exact]);
    }
    for (let n = 0; n < 20; n++) {
      const corner = () => [view.width * random(), view.height * random()];
      const line = Array.from({ length: 3 + n }, corner);
      const path = new Path2D();
      for (const [x, y] of line) path.lineTo(x, y);
      path.closePath();
      const context = element("canvas").getContext("2d");
      const expected = rows.filter((row) => context.isPointInPath(path, ...places[row], "evenodd"));
      const found = [...points.inside(view, line)].sort((a, b) => a - b);
      if (found.join() !== expected.join()) wrong.push(["inside", zoom, line]);
    }
  }
  return wrong;
}"""
# The names on the map, with their boxes, as they are drawn from now on.
WATCH = """() => {
  const draw = labels.ownDraw ??= labels.draw;
  labels.draw = (...given) => { labels.placed = draw(...given); return labels.placed; };
  map.redraw();
}"""
PLACED = """() => labels.placed.map(({ region, box, side }) =>
  ({ text: mapNames.textOf(region), box, side }))"""


@pytest.fixture
def crowd(crowd_visit):
    """Open the report of the crowd, in a page that the tests of this module share."""
    crowd_visit.page.bring_to_front()
    crowd_visit.reset()
    crowd_visit.page.evaluate(WATCH)
    yield crowd_visit
    crowd_visit.check()


def zoom_to(seen, x: float, y: float, zoom: float) -> None:
    seen.page.evaluate(f"camera.fit(), camera.centreOn({x}, {y}, {zoom}), map.redraw()")
    seen.until_drawn()


def placed(seen) -> list[dict]:
    seen.until_drawn()
    return seen.page.evaluate(PLACED)


def names(seen) -> set[str]:
    return {label["text"] for label in placed(seen)}


def test_the_grid_finds_what_looking_at_every_dot_finds(crowd):
    assert crowd.page.evaluate(BRUTE_FORCE) == []


def test_hidden_dots_are_left_out_and_nobody_sees_it(crowd):
    """On a small map, cells are as small as dots, and only the upper dots of each are drawn."""
    drawn, all_of_them, difference = crowd.page.evaluate(
        """() => {
          const size = { width: 100, height: 80 };
          const view = { scaleX: 60, scaleY: 40, left: 20, top: 20, zoom: 1, ...size };
          const context = element("canvas", size)
            .getContext("2d", { willReadFrequently: true });
          const runs = dotGrid.runs;
          let count = 0;
          function pixels(limited) {
            dotGrid.runs = (...given) => {
              const found = limited ? runs(...given) : runs(...given.with(2, 0));
              count = 0;
              for (let i = 0; i < found.length; i += 2) count += found[i + 1] - found[i];
              return found;
            };
            points.draw(context, view, 1, 1.3, null);
            return [count, context.getImageData(0, 0, 100, 80).data];
          }
          const [few, some] = pixels(true);
          const [many, all] = pixels(false);
          dotGrid.runs = runs;
          const differences = all.reduce((sum, value, i) => sum + Math.abs(value - some[i]), 0);
          return [few, many, differences / all.length];
        }"""
    )
    assert drawn < all_of_them / 2
    assert all_of_them == 3000
    # Mean difference of the levels from 0 to 255.
    assert difference < 1


def test_members_are_sorted_by_confidence(crowd, crowd_run):
    confidence = np.rint(250 * np.array(crowd_run.assignments["confidence"]))
    rows = np.flatnonzero(crowd_run.labels == 3)
    expected = sorted(rows.tolist(), key=lambda row: (-confidence[row], row))
    assert crowd.page.evaluate("[...report.membersOf(3)]") == expected


def test_names_of_groups_give_way_to_those_of_clusters(visit, crowd_run):
    seen = visit(crowd_run.report, viewport={"width": 390, "height": 844})
    seen.page.evaluate(WATCH)
    first, second = (node.name for node in crowd_run.tree.children[:2])
    far = names(seen)
    assert {first, second} <= far
    # The third group is in four places, so its clusters show their own names.
    assert {f"{letter} things" for letter in "mnop"} <= far
    assert len(far & {f"{letter} things" for letter in "abcdefghijkl"}) < 12
    zoom_to(seen, 0.15, 0.2, 8)
    near = names(seen)
    assert first not in near
    assert near <= {f"{letter} things" for letter in "abcdef"}
    assert len(near) >= 3


@pytest.mark.parametrize("zoom", [1, 1.3, 2, 3, 5])
def test_names_never_overlap(crowd, zoom):
    zoom_to(crowd, 0.8, 0.25, zoom)
    labels = placed(crowd)
    assert labels
    width = crowd.page.evaluate("camera.view().width")
    boxes = [label["box"] for label in labels] + [[width - 56, 0, width, 264]]
    for i, (a0, b0, a1, b1) in enumerate(boxes):
        for c0, d0, c1, d1 in boxes[:i]:
            assert a1 <= c0 or c1 <= a0 or b1 <= d0 or d1 <= b0


def test_names_keep_their_sides_while_the_map_moves(crowd):
    zoom_to(crowd, 0.2, 0.25, 3)
    before = {label["text"]: label["side"] for label in placed(crowd)}
    for _ in range(6):
        crowd.page.evaluate("camera.pan(7, 3), map.redraw()")
        after = {label["text"]: label["side"] for label in placed(crowd)}
        common = before.keys() & after.keys()
        assert len(common) >= len(before) - 1
        assert {name: after[name] for name in common} == {name: before[name] for name in common}
        before = after


def test_a_change_of_clusters_shows_after_a_refresh(visit, crowd_run):
    seen = visit(crowd_run.report)
    seen.page.evaluate(WATCH)
    x, y = seen.page.evaluate("points.position(camera.view(), report.membersOf(12)[0])")

    def colour() -> np.ndarray:
        return seen.canvas()[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].reshape(-1, 3)

    def distance_to(cluster: int) -> int:
        expected = np.array(seen.page.evaluate(f"colours.of({cluster})"))
        return int(np.abs(colour().astype(int) - expected).max(axis=1).min())

    assert {"m things", "p things"} <= names(seen)
    assert distance_to(12) < 30 < distance_to(15)
    seen.page.evaluate(
        """() => {
          for (const row of report.membersOf(12)) report.cluster[row] = 15;
          report.names[12] = null;
          report.names[15] = "all of these";
          report.clustersChanged();
          map.refresh();
        }"""
    )
    after = names(seen)
    assert "all of these" in after
    assert not {"m things", "p things", "null"} & after
    assert distance_to(15) < 30 < distance_to(12)


def test_a_page_can_show_and_ring_a_dot(seen):
    page = seen.page
    page.evaluate("camera.centreOn(1, 1, 60), map.redraw()")
    seen.until_drawn()
    before = seen.zoom()
    page.evaluate("map.showRow(3)")
    seen.until_drawn()
    view, (x, y) = page.evaluate("[camera.view(), points.position(camera.view(), 3)]")
    assert (x, y) == pytest.approx((view["width"] / 2, view["height"] / 2), abs=1)
    assert seen.zoom() == before
    ringed = seen.canvas()
    page.evaluate("map.ring(-1)")
    seen.until_drawn()
    changed = np.argwhere(np.abs(ringed.astype(int) - seen.canvas()).max(axis=2) > 30)
    assert len(changed) > 20
    assert np.abs(changed - [y, x]).max() < 30
    # A dot that is in view with its thumbnail stays where it is.
    page.evaluate("camera.pan(90, 40), map.showRow(3)")
    moved = page.evaluate("points.position(camera.view(), 3)")
    assert moved == pytest.approx([x + 90, y + 40])
    page.evaluate("map.ring(-1)")


def test_a_page_says_what_a_click_does_and_hears_of_hovering(visit):
    seen = visit()
    page = seen.page
    page.evaluate(
        "window.heard = [], map.onOpen((row) => heard.push(['open', row])),"
        "map.onHover((row) => heard.push(['hover', row]))"
    )
    page.mouse.click(*seen.dot(4))
    seen.until("heard.some(([kind]) => kind === 'open')")
    assert page.evaluate("heard") == [["hover", 4], ["hover", -1], ["open", 4]]
    assert page.locator("#lightbox").is_hidden()


def draw_box(seen, first, second) -> None:
    seen.page.mouse.move(*seen.on_map(*first))
    seen.page.mouse.down()
    seen.page.mouse.move(*seen.on_map(*second), steps=3)
    seen.page.mouse.up()


def test_shift_adds_to_a_selection_and_alt_takes_away(seen):
    page = seen.page

    def count() -> str:
        return page.inner_text("#selection-count")

    assert page.locator("#map-canvas.is-fitted").count() == 1
    page.click("[data-tool=box]")
    # Now one finger draws and no longer scrolls the page.
    assert page.locator("#map-canvas.is-fitted").count() == 0
    draw_box(seen, (0.01, 0.01), (0.45, 0.45))
    assert count() == "30 images selected"
    page.keyboard.down("Shift")
    draw_box(seen, (0.3, 0.6), (0.7, 0.99))
    page.keyboard.up("Shift")
    assert count() == "60 images selected"
    assert page.evaluate("[...new Set(Array.from(selection.rows(), (row) => row % 3))]") == [0, 2]
    page.keyboard.down("Alt")
    draw_box(seen, (0.01, 0.01), (0.45, 0.45))
    page.keyboard.up("Alt")
    assert count() == "30 images selected"
    draw_box(seen, (0.55, 0.01), (0.94, 0.45))
    assert page.evaluate("[...new Set(Array.from(selection.rows(), (row) => row % 3))]") == [1]


def test_selected_dots_are_seen_among_many(crowd):
    """One selected dot below others of its cell is drawn on top of them."""
    row = crowd.page.evaluate(
        "dotGrid.rows[dotGrid.starts[dotGrid.starts.findIndex((end) => end > 3) - 1]]"
    )
    crowd.page.evaluate(f"selection.set([{row}])")
    crowd.page.evaluate("() => { labels.draw = () => []; map.redraw(); }")
    crowd.until_drawn()
    x, y = (int(value) for value in crowd.page.evaluate(f"points.position(camera.view(), {row})"))
    nearby = crowd.canvas()[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3).astype(int)
    background = crowd.canvas()[2, 2].astype(int)
    # Coloured, not grey as the others are.
    assert (nearby.max(axis=1) - nearby.min(axis=1)).max() > 30
    assert background.max() - background.min() < 10


def test_thumbnails_do_not_overlap_and_stay_while_the_map_moves(seen):
    page = seen.page
    page.evaluate(
        """() => {
          const draw = photos.ownDraw = photos.draw;
          photos.draw = (...given) => (photos.boxes = draw(...given));
          camera.centreOn(0.1, 0.1, 4);
          map.redraw();
        }"""
    )
    seen.until("photos.boxes?.length > 5")
    page.wait_for_timeout(100)
    boxes = page.evaluate("photos.boxes")
    for i, (a0, b0, a1, b1) in enumerate(boxes):
        for c0, d0, c1, d1 in boxes[:i]:
            assert a1 <= c0 or c1 <= a0 or b1 <= d0 or d1 <= b0
    shown = set(page.evaluate("[...photos.shownRows()]"))
    for _ in range(4):
        page.evaluate("camera.pan(-15, 4), map.redraw()")
        seen.until_drawn()
        now = set(page.evaluate("[...photos.shownRows()]"))
        gone = page.evaluate(
            "(rows) => rows.filter((row) => { const { width, height } = camera.view();"
            "const [x, y] = points.position(camera.view(), row);"
            "return x > 0 && y > 0 && x < width && y < height; })",
            sorted(shown - now),
        )
        assert gone == []
        shown = now
    page.evaluate("() => { photos.draw = photos.ownDraw; }")
