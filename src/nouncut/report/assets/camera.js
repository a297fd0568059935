"use strict";
// Which part of the unit square the map shows, in pixels of the page.
const camera = (() => {
  const MARGIN = 36;
  const MOST = 400;
  // The tools stand on the right of a wide map.
  const TOOLS = 48;
  const WIDE = 768;
  // The square may be drawn as a rectangle of up to this shape, to use a wide frame.
  const STRETCH = 2.2;
  let [width, height] = [1, 1];
  // At zoom 1 everything is in view, `wide` by `high` pixels.
  let [wide, high] = [1, 1];
  let [zoom, left, top] = [1, 0, 0];

  const limited = (value, least, most) => Math.min(most, Math.max(least, value));

  const tools = () => (width < WIDE ? 0 : TOOLS);

  // Everything stays within reach: the middle of the view never leaves the square.
  function clamp() {
    zoom = limited(zoom, 1, MOST);
    if (zoom === 1) {
      [left, top] = [(width - tools() - wide) / 2, (height - high) / 2];
      return;
    }
    left = limited(left, width / 2 - zoom * wide, width / 2);
    top = limited(top, height / 2 - zoom * high, height / 2);
  }

  function centreOn(x, y) {
    left = width / 2 - x * zoom * wide;
    top = height / 2 - y * zoom * high;
    clamp();
  }

  function resize(newWidth, newHeight) {
    const x = (width / 2 - left) / (zoom * wide);
    const y = (height / 2 - top) / (zoom * high);
    [width, height] = [newWidth, newHeight];
    const roomX = Math.max(1, width - tools() - 2 * MARGIN);
    const roomY = Math.max(1, height - 2 * MARGIN);
    wide = Math.min(roomX, roomY * STRETCH);
    high = Math.min(roomY, roomX * STRETCH);
    centreOn(x, y);
  }

  function zoomAt(x, y, factor) {
    const next = limited(zoom * factor, 1, MOST);
    left = x - ((x - left) * next) / zoom;
    top = y - ((y - top) * next) / zoom;
    zoom = next;
    clamp();
  }

  function pan(byX, byY) {
    left += byX;
    top += byY;
    clamp();
  }

  function fit() {
    zoom = 1;
    clamp();
  }

  // Shows a part of the square, given by its edges, with some of what is around it.
  function show(x0, y0, x1, y1) {
    const across = Math.max((x1 - x0) * wide / width, (y1 - y0) * high / height, 0.02);
    zoom = limited(0.6 / across, 1, MOST);
    centreOn((x0 + x1) / 2, (y0 + y1) / 2);
  }

  return {
    resize,
    zoomAt,
    pan,
    fit,
    show,
    view: () => ({ scaleX: zoom * wide, scaleY: zoom * high, left, top, width, height, zoom }),
    isFitted: () => zoom === 1,
  };
})();
