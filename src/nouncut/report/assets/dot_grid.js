"use strict";
// All dots, sorted into the cells of a square grid, the surest last in each cell. The dots in a box
// are a few runs that lie one after the other in memory, so that nothing has to look at all dots.
const dotGrid = (() => {
  const n = report.x.length;
  // About four dots for each cell, and at most 512 x 512 cells: two pixels each on a wide screen.
  const bits = Math.min(9, Math.max(0, Math.ceil(Math.log2(Math.max(1, n / 4)) / 2)));
  const side = 2 ** bits;
  const shift = 16 - bits;

  // A fixed random order, for dots that are equally sure.
  function shuffled() {
    const rows = counting.rows(n);
    let seed = 1;
    for (let i = n - 1; i > 0; i--) {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      const j = seed % (i + 1);
      const row = rows[i];
      rows[i] = rows[j];
      rows[j] = row;
    }
    return rows;
  }

  function cellsOfRows() {
    const cells = new Uint32Array(n);
    for (let row = 0; row < n; row++) {
      cells[row] = (report.y[row] >> shift) * side + (report.x[row] >> shift);
    }
    return cells;
  }

  function percents() {
    const sure = new Uint8Array(n);
    for (let row = 0; row < n; row++) sure[row] = 100 * (report.confidence(row) ?? 1);
    return sure;
  }

  const bySureness = counting.sort(shuffled(), percents(), 101).rows;
  const { rows, starts } = counting.sort(bySureness, cellsOfRows(), side * side);
  const xs = counting.take(report.x, rows);
  const ys = counting.take(report.y, rows);

  const place = (position) => Math.min(side - 1, Math.max(0, Math.floor(position) >> shift));

  // The cells that a box on the screen touches: first and last column, first and last line.
  function cellsIn(view, [x0, y0, x1, y1]) {
    const [perX, perY] = [MAX_POSITION / view.scaleX, MAX_POSITION / view.scaleY];
    return [
      place((x0 - view.left) * perX), place((x1 - view.left) * perX),
      place((y0 - view.top) * perY), place((y1 - view.top) * perY),
    ];
  }

  // Runs of dots as [start, end, start, end, ...]: all dots in the box, and some around it. With a
  // limit, only the last ones of each cell. `begins` are the starts of the cells among some dots.
  function runs(view, box, limit = 0, begins = starts) {
    const [first, last, top, bottom] = cellsIn(view, box);
    const found = [];
    const step = limit ? 1 : last - first + 1;
    for (let line = top; line <= bottom; line++) {
      for (let column = first; column <= last; column += step) {
        const cell = line * side + column;
        const end = begins[cell + step];
        const start = limit ? Math.max(begins[cell], end - limit) : begins[cell];
        if (start === end) continue;
        if (start === found[found.length - 1]) found[found.length - 1] = end;
        else found.push(start, end);
      }
    }
    return found;
  }

  // Counts the dots in a box on the screen.
  function count(view, box) {
    const [scaleX, scaleY] = [view.scaleX / MAX_POSITION, view.scaleY / MAX_POSITION];
    const [x0, x1] = [(box[0] - view.left) / scaleX, (box[2] - view.left) / scaleX];
    const [y0, y1] = [(box[1] - view.top) / scaleY, (box[3] - view.top) / scaleY];
    const [first, last, top, bottom] = cellsIn(view, box);
    // Of many small cells, all that the box touches count.
    const isRough = last - first > 8 && bottom - top > 8;
    let total = 0;
    for (let line = top; line <= bottom; line++) {
      const [start, end] = [starts[line * side + first], starts[line * side + last + 1]];
      if (isRough) {
        total += end - start;
        continue;
      }
      for (let i = start; i < end; i++) {
        if (xs[i] >= x0 && xs[i] <= x1 && ys[i] >= y0 && ys[i] <= y1) total += 1;
      }
    }
    return total;
  }

  // The usual distance between neighbours, as a share of the map: that of the middle one of all
  // dots, if the dots of each cell were spread evenly.
  function usualGap() {
    const counts = [];
    for (let cell = 0; cell < side * side; cell++) {
      const size = starts[cell + 1] - starts[cell];
      if (size) counts.push(size);
    }
    counts.sort((a, b) => a - b);
    let seen = 0;
    for (const size of counts) {
      seen += size;
      if (seen >= n / 2) return 1 / side / Math.sqrt(size);
    }
    return 1;
  }

  return { n, side, shift, xs, ys, rows, starts, cellsIn, runs, count, gap: usualGap() };
})();
