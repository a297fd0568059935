"use strict";
// Pointers, wheel and tools of the map. `act` has what they do: pan(byX, byY), zoomAt(x, y, factor),
// hover(x, y), leave(), click(x, y, delay, isSelecting), cancelClick(), select(line, change), redraw(),
// and toolChanged().
function gestures(canvas, tools, act) {
  // A second click within this time zooms instead.
  const DOUBLE_CLICK = 220;
  const pointers = new Map();
  let tool = "pan";
  let drag = null;
  // What the box or the lasso has drawn.
  let line = null;
  let ownsWheel = false;

  const positionOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  // Shift adds to a selection, and Alt takes away from it.
  const changeOf = (event) => ({ isMore: event.shiftKey && tool !== "pan", isLess: event.altKey });

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
      if (event.pointerType !== "touch" && tool === "pan") act.hover(x, y);
      return;
    }
    if (Math.hypot(x - drag.startX, y - drag.startY) > 4) drag.isMoved = true;
    if (!drag.isMoved) return;
    if (drag.kind === "pan") {
      act.pan(x - drag.x, y - drag.y);
      canvas.classList.add("is-dragged");
    } else if (drag.kind === "lasso") {
      line.push([x, y]);
    } else {
      line = [[drag.startX, drag.startY], [x, drag.startY], [x, y], [drag.startX, y]];
    }
    [drag.x, drag.y] = [x, y];
    act.redraw();
  }

  function pinch(id, x, y) {
    const [other] = [...pointers].filter(([number]) => number !== id).map(([, position]) => position);
    const [oldX, oldY] = pointers.get(id);
    const before = Math.hypot(oldX - other[0], oldY - other[1]);
    const after = Math.hypot(x - other[0], y - other[1]);
    act.pan((x - oldX) / 2, (y - oldY) / 2);
    if (before > 0) act.zoomAt((x + other[0]) / 2, (y + other[1]) / 2, after / before);
    pointers.set(id, [x, y]);
  }

  function end(event) {
    pointers.delete(event.pointerId);
    canvas.classList.remove("is-dragged");
    if (!drag) return;
    const [{ kind, isMoved }, drawn] = [drag, line];
    [drag, line] = [null, null];
    if (isMoved && kind !== "pan" && drawn?.length > 2) act.select(drawn, changeOf(event));
    else if (!isMoved && event.type === "pointerup") {
      act.click(...positionOf(event), event.pointerType === "mouse" ? DOUBLE_CLICK : 0, kind !== "pan");
    }
    act.redraw();
  }

  function wheel(event) {
    // If the map comes under the pointer while the page scrolls, the page keeps scrolling.
    if (!ownsWheel && !event.ctrlKey) return;
    if (event.deltaY > 0 && camera.isFitted() && !event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 33 : 1;
    const by = Math.max(-240, Math.min(240, event.deltaY * lines));
    act.zoomAt(...positionOf(event), Math.exp(-by * (event.ctrlKey ? 0.01 : 0.0022)));
  }

  function choose(name) {
    tool = name;
    canvas.dataset.tool = name;
    for (const button of tools) button.setAttribute("aria-pressed", button.dataset.tool === name);
    act.toolChanged();
  }

  // Ends drawing and the tool; returns whether there was anything to end.
  function cancel() {
    const had = line !== null || tool !== "pan";
    [drag, line] = [null, null];
    if (tool !== "pan") choose("pan");
    return had;
  }

  canvas.addEventListener("pointerdown", start);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    ownsWheel = false;
    if (!drag) act.leave();
  });
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("dblclick", (event) => {
    act.cancelClick();
    act.zoomAt(...positionOf(event), event.shiftKey ? 0.5 : 2);
  });
  for (const button of tools) button.addEventListener("click", () => choose(button.dataset.tool));
  return { choose, cancel, tool: () => tool, line: () => line };
}
