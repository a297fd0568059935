"use strict";
// Images selected on the map with a box or a lasso.
const selection = (() => {
  const panel = document.getElementById("selection");
  const strip = document.getElementById("selection-strip");
  const listeners = [];
  let rows = [];
  let stopFilling = () => {};

  function set(chosen) {
    rows = [...chosen].sort((a, b) => report.cluster[a] - report.cluster[b] || a - b);
    stopFilling();
    panel.hidden = rows.length === 0;
    document.getElementById("selection-count").textContent =
      `${format.counted(rows.length, report.things)} selected`;
    strip.allRows = rows;
    if (rows.length && report.hasImages) stopFilling = thumbnails.fill(strip, rows);
    else strip.replaceChildren();
    for (const listener of listeners) listener();
  }

  function mask() {
    if (!rows.length) return null;
    const found = new Uint8Array(report.nImages);
    for (const row of rows) found[row] = 1;
    return found;
  }

  if (panel) {
    document.getElementById("selection-clear").addEventListener("click", () => set([]));
    const copy = document.getElementById("selection-copy");
    copy.addEventListener("click", () => {
      clipboard.copyFrom(copy, `${rows.map(report.fullPath).join("\n")}\n`);
    });
  }
  return {
    set,
    mask,
    rows: () => rows,
    clear: () => { if (rows.length) set([]); },
    onChange: (listener) => listeners.push(listener),
  };
})();
