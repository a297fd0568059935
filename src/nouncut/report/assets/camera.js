"use strict";
// The visible part of the map: the unit square, scaled and moved, in CSS pixels.
const camera = (() => {
  const MARGIN = 36;
  const MAX_ZOOM = 400;
  // On a wide map, the tools take this much on the right.
  const TOOLS = 48;
  const WIDE = 768;
  // The square may be stretched up to this ratio of its sides, to fill a wide frame.
  const MAX_STRETCH = 2.2;
  let [width, height] = [1, 1];
  // The size of the whole map at zoom 1.
  let [wide, high] = [1, 1];
  let [zoom, left, top] = [1, 0, 0];

  const limited = (value, least, most) => Math.min(most, Math.max(least, value));

  const tools = () => (width < WIDE ? 0 : TOOLS);

  // The middle of the view never leaves the square, so the map stays in sight.
  function clamp() {
    zoom = limited(zoom, 1, MAX_ZOOM);
    if (zoom === 1) {
      [left, top] = [(width - tools() - wide) / 2, (height - high) / 2];
      return;
    }
    left = limited(left, width / 2 - zoom * wide, width / 2);
    top = limited(top, height / 2 - zoom * high, height / 2);
  }

  // Puts a point of the unit square in the middle, at a zoom of no less than `least`.
  function centreOn(x, y, least = zoom) {
    zoom = limited(Math.max(zoom, least), 1, MAX_ZOOM);
    left = width / 2 - x * zoom * wide;
    top = height / 2 - y * zoom * high;
    clamp();
  }

  function resize(newWidth, newHeight) {
    const x = (width / 2 - left) / (zoom * wide);
    const y = (height / 2 - top) / (zoom * high);
    [width, height] = [newWidth, newHeight];
    const freeX = Math.max(1, width - tools() - 2 * MARGIN);
    const freeY = Math.max(1, height - 2 * MARGIN);
    wide = Math.min(freeX, freeY * MAX_STRETCH);
    high = Math.min(freeY, freeX * MAX_STRETCH);
    centreOn(x, y);
  }

  function zoomAt(x, y, factor) {
    const next = limited(zoom * factor, 1, MAX_ZOOM);
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

  // Shows a part of the square, given by its edges, with some space around it.
  function show(x0, y0, x1, y1) {
    const across = Math.max((x1 - x0) * wide / width, (y1 - y0) * high / height, 0.02);
    zoom = limited(0.6 / across, 1, MAX_ZOOM);
    centreOn((x0 + x1) / 2, (y0 + y1) / 2);
  }

  return {
    resize,
    zoomAt,
    pan,
    centreOn,
    fit,
    show,
    view: () => ({ scaleX: zoom * wide, scaleY: zoom * high, left, top, width, height, zoom }),
    isFitted: () => zoom === 1,
  };
})();
