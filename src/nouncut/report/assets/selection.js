"use strict";
// Images selected on the map with a box or a lasso.
const selection = (() => {
  const panel = document.getElementById("selection");
  const strip = document.getElementById("selection-strip");
  const listeners = [];
  let rows = new Uint32Array(0);
  // One byte per image, 1 if it is selected; null without a selection.
  let mask = null;
  let stopFilling = () => {};

  function maskOf(chosen, { isMore, isLess }) {
    const found = (isMore || isLess) && mask ? mask.slice() : new Uint8Array(report.nImages);
    for (let i = 0; i < chosen.length; i++) found[chosen[i]] = isLess ? 0 : 1;
    return found;
  }

  // Selects rows, or adds them to those selected (`isMore`), or takes them out (`isLess`).
  function set(chosen, change = {}) {
    const next = maskOf(chosen, change);
    rows = counting.sort(counting.where(next), report.cluster, report.names.length).rows;
    mask = rows.length ? next : null;
    stopFilling();
    panel.hidden = rows.length === 0;
    document.getElementById("selection-count").textContent =
      say("selected", { things: report.things(rows.length) });
    strip.allRows = rows;
    if (rows.length && report.hasImages) stopFilling = thumbnails.fill(strip, rows);
    else strip.replaceChildren();
    for (const listener of listeners) listener();
  }

  if (panel) {
    document.getElementById("selection-clear").addEventListener("click", () => set([]));
    const copy = document.getElementById("selection-copy");
    copy.addEventListener("click", () => {
      clipboard.copyFrom(copy, `${Array.from(rows, report.fullPath).join("\n")}\n`);
    });
  }
  return {
    set,
    mask: () => mask,
    rows: () => rows,
    clear: () => { if (rows.length) set([]); },
    onChange: (listener) => listeners.push(listener),
  };
})();
