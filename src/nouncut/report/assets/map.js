"use strict";
// The map: drawing, hovering and keys.
const map = (() => {
  const frame = document.getElementById("map-frame");
  const nothing = () => {};
  if (!frame || !points.n) {
    return {
      redraw: nothing, refresh: nothing, showCluster: nothing, showRow: nothing, ring: nothing,
      onOpen: nothing, onHover: nothing, cancel: () => false,
    };
  }
  const canvas = document.getElementById("map-canvas");
  const context = canvas.getContext("2d", { alpha: false });
  const hoverListeners = [];
  let open = openLightbox;
  let hovered = -1;
  // A row that something outside the map points at.
  let ringed = -1;
  let highlighted = null;
  let density = 1;
  let ink = "";
  let halo = "";
  let isWaiting = false;
  let opening = 0;

  // Drawing

  function radius(view) {
    const crowd = Math.sqrt((view.width * view.height) / points.n);
    return Math.min(9, Math.max(1.3, crowd / 7) * Math.min(2.6, view.zoom ** 0.35), 4.2 + view.zoom);
  }

  function readColours() {
    const style = getComputedStyle(frame);
    const bytes = (name) => style.getPropertyValue(name).trim().split(/\s+/).map(Number);
    const isDark = theme.isDark();
    const background = bytes(isDark ? "--map-dark" : "--map-light");
    points.paint(background, bytes(isDark ? "--faint-dark" : "--faint-light"));
    ink = isDark ? "#f4f4f2" : "#17181a";
    halo = `rgb(${background.join(" ")} / 0.88)`;
  }

  function draw() {
    isWaiting = false;
    const view = camera.view();
    const mask = selection.mask() ?? highlighted?.mask ?? null;
    context.setTransform(1, 0, 0, 1, 0, 0);
    points.draw(context, view, density, radius(view), mask);
    context.setTransform(density, 0, 0, density, 0, 0);
    const boxes = photos.draw(context, view, mask, redraw);
    const imageOf = (cluster) => photos.typical(cluster, view, redraw);
    labels.draw(context, view, ink, halo, highlighted, boxes, imageOf);
    for (const row of new Set([ringed, hovered])) if (row >= 0) drawRing(view, row);
    if (hand.line()) drawLine(hand.line());
    frame.dataset.zoom = view.zoom.toFixed(2);
  }

  function redraw() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(draw);
  }

  // A dark ring within a light one, which is visible on dots and on thumbnails.
  function drawRing(view, row) {
    context.beginPath();
    context.arc(...points.position(view, row), radius(view) + 4, 0, 2 * Math.PI);
    for (const [width, colour] of [[6, halo], [2.5, ink]]) {
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.stroke();
    }
  }

  function drawLine(line) {
    context.beginPath();
    for (const [x, y] of line) context.lineTo(x, y);
    context.closePath();
    context.fillStyle = theme.isDark() ? "rgb(255 255 255 / 0.1)" : "rgb(0 0 0 / 0.07)";
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = ink;
    context.stroke();
  }

  function resize() {
    const { clientWidth, clientHeight } = canvas;
    if (!clientWidth || !clientHeight) return;
    // A higher density looks no better and takes longer.
    density = Math.min(2, devicePixelRatio || 1);
    canvas.width = Math.round(clientWidth * density);
    canvas.height = Math.round(clientHeight * density);
    camera.resize(clientWidth, clientHeight);
    draw();
  }

  // After each move. While the whole map is visible, one finger scrolls the page.
  function moved() {
    canvas.classList.toggle("is-fitted", camera.isFitted() && hand.tool() === "pan");
    hover(-1);
    redraw();
  }

  // To be called after clusters, names, the tree or confidences have changed in place.
  function refresh() {
    points.repaint();
    labels.refresh();
    mapCard.show(hovered);
    redraw();
  }

  // Hovering

  function hover(row, x, y) {
    if (row !== hovered) {
      hovered = row;
      mapCard.show(row);
      if (row >= 0) canvas.setAttribute("aria-valuetext", report.fileName(row));
      redraw();
      for (const listener of hoverListeners) listener(row);
    }
    if (row >= 0) mapCard.place(x, y);
  }

  function nearest(x, y, within = 14) {
    return points.at(camera.view(), x, y, within, highlighted?.mask);
  }

  function openLightbox(row) {
    const rows = report.membersOf(report.cluster[row]);
    lightbox.open(rows, rows.indexOf(row));
  }

  function openAt(row) {
    hover(-1);
    open(row);
  }

  // Waits for a second click, which would zoom instead.
  function click(x, y, delay, isSelecting) {
    const row = nearest(x, y);
    clearTimeout(opening);
    if (row >= 0) opening = setTimeout(openAt, delay, row);
    else if (isSelecting) selection.clear();
  }

  const hand = gestures(canvas, [...frame.querySelectorAll("[data-tool]")], {
    click,
    redraw,
    cancelClick: () => clearTimeout(opening),
    toolChanged: moved,
    hover: (x, y) => hover(nearest(x, y), x, y),
    leave: () => hover(-1),
    select: (line, change) => selection.set(points.inside(camera.view(), line), change),
    pan: (byX, byY) => {
      camera.pan(byX, byY);
      moved();
    },
    zoomAt: (x, y, factor) => {
      camera.zoomAt(x, y, factor);
      moved();
    },
  });

  // Buttons and keys

  function zoom(factor) {
    const { width, height } = camera.view();
    camera.zoomAt(width / 2, height / 2, factor);
    moved();
  }

  function fit() {
    camera.fit();
    moved();
  }

  // With the keyboard, the image nearest to the middle is the current one.
  function pointAtMiddle() {
    const { width, height } = camera.view();
    const row = nearest(width / 2, height / 2, Math.hypot(width, height));
    if (row >= 0) hover(row, ...points.position(camera.view(), row));
  }

  const STEP = 80;
  const keys = {
    ArrowLeft: () => camera.pan(STEP, 0),
    ArrowRight: () => camera.pan(-STEP, 0),
    ArrowUp: () => camera.pan(0, STEP),
    ArrowDown: () => camera.pan(0, -STEP),
    "+": () => zoom(1.5),
    "=": () => zoom(1.5),
    "-": () => zoom(1 / 1.5),
    0: fit,
  };

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && hovered >= 0) openAt(hovered);
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    moved();
    pointAtMiddle();
  }

  // Escape ends drawing, selection and tool; returns whether there was anything to end.
  function cancel() {
    const hadSelection = selection.rows().length > 0;
    const had = hand.cancel() || hadSelection;
    selection.clear();
    moved();
    return had;
  }

  function showCluster(number) {
    if (!report.membersOf(number).length) return;
    camera.show(...regions.boundsOf(number));
    moved();
    document.getElementById("map").scrollIntoView();
    canvas.focus({ preventScroll: true });
  }

  function ring(row) {
    ringed = row;
    redraw();
  }

  // Moves the map until a dot is in view, near enough to have its thumbnail, and rings it.
  function showRow(row) {
    const view = camera.view();
    const [x, y] = points.position(view, row);
    const isVisible = x > 24 && y > 24 && x < view.width - 24 && y < view.height - 24;
    const least = photos.zoomWithSpace(view);
    if (!isVisible || view.zoom < least) {
      camera.centreOn(report.x[row] / MAX_POSITION, report.y[row] / MAX_POSITION, least);
      moved();
    }
    ring(row);
  }

  canvas.addEventListener("keydown", key);
  canvas.addEventListener("blur", () => hover(-1));
  const press = (id, action) => document.getElementById(id).addEventListener("click", action);
  press("zoom-in", () => zoom(1.6));
  press("zoom-out", () => zoom(1 / 1.6));
  press("zoom-fit", fit);

  theme.onChange(() => {
    readColours();
    redraw();
  });
  search.onChange((found) => {
    highlighted = found;
    redraw();
  });
  selection.onChange(redraw);
  readColours();
  resize();
  hand.choose("pan");
  new ResizeObserver(resize).observe(canvas);
  return {
    redraw,
    refresh,
    showCluster,
    showRow,
    ring,
    ringed: () => ringed,
    cancel,
    // What a click on a dot does, instead of opening the lightbox.
    onOpen: (listener) => { open = listener; },
    // Called with the row under the pointer, or -1.
    onHover: (listener) => hoverListeners.push(listener),
  };
})();
