"use strict";
// Rows chosen and sorted by counting: millions in milliseconds.
const counting = {
  // All rows in their order.
  rows(n) {
    const rows = new Uint32Array(n);
    for (let row = 0; row < n; row++) rows[row] = row;
    return rows;
  },

  // The rows inside a mask, in their order.
  where(mask) {
    let size = 0;
    for (let row = 0; row < mask.length; row++) size += mask[row];
    const rows = new Uint32Array(size);
    for (let row = 0, next = 0; next < size; row++) if (mask[row]) rows[next++] = row;
    return rows;
  },

  // Sorts rows by their keys, each below `size`; equal ones keep their order. `starts[key]` is where
  // the rows of a key begin.
  sort(rows, keys, size) {
    const starts = new Uint32Array(size + 1);
    for (let i = 0; i < rows.length; i++) starts[keys[rows[i]] + 1] += 1;
    for (let key = 0; key < size; key++) starts[key + 1] += starts[key];
    const next = starts.slice(0, size);
    const sorted = new Uint32Array(rows.length);
    for (let i = 0; i < rows.length; i++) sorted[next[keys[rows[i]]]++] = rows[i];
    return { rows: sorted, starts };
  },

  // The values of some rows, in their order.
  take(column, rows) {
    const taken = new column.constructor(rows.length);
    for (let i = 0; i < rows.length; i++) taken[i] = column[rows[i]];
    return taken;
  },
};
