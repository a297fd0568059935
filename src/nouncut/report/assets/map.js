"use strict";
// The map: drawing, pointers, tools and keys.
const map = (() => {
  const frame = document.getElementById("map-frame");
  if (!frame || !points.n) return { redraw() {}, showCluster() {}, cancel: () => false };
  const canvas = document.getElementById("map-canvas");
  const context = canvas.getContext("2d", { alpha: false });
  const card = document.getElementById("map-card");
  const tools = [...frame.querySelectorAll("[data-tool]")];
  const pointers = new Map();
  let tool = "pan";
  let drag = null;
  let line = null;
  let hovered = -1;
  let highlighted = null;
  let density = 1;
  let ink = "";
  let halo = "";
  let isWaiting = false;
  let ownsWheel = false;
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
    photos.draw(context, view, mask, redraw);
    const found = selection.rows().length ? null : highlighted;
    labels.draw(context, view, ink, halo, found, (cluster) => photos.typical(cluster, view, redraw));
    if (hovered >= 0) drawRing(view);
    if (line) drawLine();
    frame.dataset.zoom = view.zoom.toFixed(2);
  }

  function redraw() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(draw);
  }

  function drawRing(view) {
    const [x, y] = points.position(view, hovered);
    context.beginPath();
    context.arc(x, y, radius(view) + 3, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = ink;
    context.stroke();
  }

  function drawLine() {
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
    canvas.classList.toggle("is-fitted", camera.isFitted() && tool === "pan");
    hover(-1);
    redraw();
  }

  // Hovering

  function hover(row, x, y) {
    if (row !== hovered) {
      hovered = row;
      card.hidden = row < 0;
      if (row >= 0) fillCard(row);
      redraw();
    }
    if (row >= 0) placeCard(x, y);
  }

  function fillCard(row) {
    const address = thumbnails.source(row);
    const image = card.querySelector("img");
    image.hidden = !address;
    if (address) image.src = address;
    card.querySelector(".map-card-name").textContent = report.fileName(row);
    card.querySelector(".map-card-cluster").textContent = report.names[report.cluster[row]];
    card.querySelector(".dot").style.backgroundColor =
      `rgb(${colours.of(report.cluster[row]).join(" ")})`;
    canvas.setAttribute("aria-valuetext", report.fileName(row));
  }

  function placeCard(x, y) {
    const { width, height } = camera.view();
    const [wide, high] = [card.offsetWidth, card.offsetHeight];
    const left = x + 18 + wide < width ? x + 18 : x - 18 - wide;
    const top = Math.min(height - high - 8, Math.max(8, y - high / 2));
    card.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
  }

  function nearest(x, y, within = 14) {
    return points.at(camera.view(), x, y, within, highlighted?.mask);
  }

  function openAt(row) {
    const rows = report.membersOf(report.cluster[row]);
    hover(-1);
    lightbox.open(rows, rows.indexOf(row));
  }

  // Pointers

  const positionOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  function start(event) {
    if (event.button) return;
    const [x, y] = positionOf(event);
    pointers.set(event.pointerId, [x, y]);
    canvas.setPointerCapture(event.pointerId);
    if (pointers.size === 2) {
      drag = line = null;
      return;
    }
    const kind = event.shiftKey && tool === "pan" ? "lasso" : tool;
    drag = { kind, x, y, startX: x, startY: y, isMoved: false };
    if (kind !== "pan") line = [[x, y]];
  }

  function move(event) {
    const [x, y] = positionOf(event);
    if (event.movementX || event.movementY || event.pointerType !== "mouse") ownsWheel = true;
    if (pointers.size === 2 && pointers.has(event.pointerId)) {
      pinch(event.pointerId, x, y);
      return;
    }
    if (!drag) {
      if (event.pointerType !== "touch") hover(tool === "pan" ? nearest(x, y) : -1, x, y);
      return;
    }
    if (Math.hypot(x - drag.startX, y - drag.startY) > 4) drag.isMoved = true;
    if (!drag.isMoved) return;
    if (drag.kind === "pan") {
      camera.pan(x - drag.x, y - drag.y);
      canvas.classList.add("is-dragged");
      moved();
    } else if (drag.kind === "lasso") {
      line.push([x, y]);
    } else {
      line = [[drag.startX, drag.startY], [x, drag.startY], [x, y], [drag.startX, y]];
    }
    [drag.x, drag.y] = [x, y];
    redraw();
  }

  function pinch(id, x, y) {
    const [other] = [...pointers].filter(([number]) => number !== id).map(([, position]) => position);
    const [oldX, oldY] = pointers.get(id);
    const before = Math.hypot(oldX - other[0], oldY - other[1]);
    const after = Math.hypot(x - other[0], y - other[1]);
    camera.pan((x - oldX) / 2, (y - oldY) / 2);
    if (before > 0) camera.zoomAt((x + other[0]) / 2, (y + other[1]) / 2, after / before);
    pointers.set(id, [x, y]);
    moved();
  }

  function end(event) {
    pointers.delete(event.pointerId);
    canvas.classList.remove("is-dragged");
    if (!drag) return;
    const [{ kind, isMoved }, [x, y]] = [drag, positionOf(event)];
    drag = null;
    if (isMoved && kind !== "pan" && line?.length > 2) {
      selection.set(points.inside(camera.view(), line));
    } else if (!isMoved && event.type === "pointerup") {
      const row = nearest(x, y);
      // Wait for a second click, which would zoom instead.
      clearTimeout(opening);
      if (row >= 0) opening = setTimeout(openAt, event.pointerType === "mouse" ? 220 : 0, row);
      else if (kind !== "pan") selection.clear();
    }
    line = null;
    redraw();
  }

  function wheel(event) {
    // If the map comes under the pointer while the page scrolls, the page keeps scrolling.
    if (!ownsWheel && !event.ctrlKey) return;
    if (event.deltaY > 0 && camera.isFitted() && !event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 33 : 1;
    const by = Math.max(-240, Math.min(240, event.deltaY * lines));
    camera.zoomAt(...positionOf(event), Math.exp(-by * (event.ctrlKey ? 0.01 : 0.0022)));
    moved();
  }

  // Tools and keys

  function choose(name) {
    tool = name;
    canvas.dataset.tool = name;
    for (const button of tools) button.setAttribute("aria-pressed", button.dataset.tool === name);
    moved();
  }

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
    const had = line || selection.rows().length || tool !== "pan";
    [drag, line] = [null, null];
    selection.clear();
    if (tool !== "pan") choose("pan");
    redraw();
    return Boolean(had);
  }

  function showCluster(number) {
    camera.show(...labels.boundsOf(number));
    moved();
    document.getElementById("map").scrollIntoView();
    canvas.focus({ preventScroll: true });
  }

  canvas.addEventListener("pointerdown", start);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    ownsWheel = false;
    if (!drag) hover(-1);
  });
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("dblclick", (event) => {
    clearTimeout(opening);
    camera.zoomAt(...positionOf(event), event.shiftKey ? 0.5 : 2);
    moved();
  });
  canvas.addEventListener("keydown", key);
  canvas.addEventListener("blur", () => hover(-1));
  for (const button of tools) button.addEventListener("click", () => choose(button.dataset.tool));
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
  choose("pan");
  new ResizeObserver(resize).observe(canvas);
  return { redraw, showCluster, cancel };
})();
