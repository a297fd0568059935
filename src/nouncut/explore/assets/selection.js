"use strict";
// The selected pictures, wherever they were selected.
const selection = (() => {
  const listeners = [];
  // A new array after every change: the map knows by it whether to draw again.
  let chosen = new Uint8Array(report.nImages);
  let list = [];

  function changed() {
    list = [];
    for (let row = 0; row < chosen.length; row++) if (chosen[row]) list.push(row);
    for (const listener of listeners) listener();
  }

  function set(rows, { isMore = false, isLess = false } = {}) {
    chosen = isMore || isLess ? chosen.slice() : new Uint8Array(chosen.length);
    for (const row of rows) chosen[row] = isLess ? 0 : 1;
    changed();
  }

  function toggle(row) {
    set([row], chosen[row] ? { isLess: true } : { isMore: true });
  }

  return {
    set,
    toggle,
    has: (row) => chosen[row] === 1,
    rows: () => list,
    mask: () => (list.length ? chosen : null),
    clear: () => { if (list.length) set([]); },
    onChange: (listener) => listeners.push(listener),
  };
})();
