"use strict";
// The dots of the map. They are written into the pixels directly: tens of milliseconds for a million
// dots, and the same look in every browser.
const points = (() => {
  const { n, xs, ys, rows } = dotGrid;
  // Colours are signed numbers of 32 bits, with which engines reckon fastest.
  const shades = new Int32Array(n);
  let paper = [0, 0, 0];
  let background = 0;
  let faint = 0;
  let image = null;
  let pixels = null;
  // The dots inside the last mask.
  let masked = { mask: null, layer: null };

  const packed = ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red;
  const mixed = (from, to, share) => from.map((value, i) => Math.round(value + share * (to[i] - value)));

  function paint(backgroundColour, faintColour) {
    paper = backgroundColour;
    background = packed(backgroundColour);
    faint = packed(faintColour);
    repaint();
  }

  // Dots of unsure images are paler.
  function repaint() {
    const steps = new Int32Array(5 * report.names.length);
    for (let cluster = 0; cluster < report.names.length; cluster++) {
      const full = colours.of(cluster);
      for (let step = 0; step < 5; step++) {
        steps[5 * cluster + step] = packed(mixed(paper, full, 0.4 + 0.15 * step));
      }
    }
    for (let i = 0; i < n; i++) {
      const row = rows[i];
      const sure = report.confidence(row) ?? 1;
      shades[i] = steps[5 * report.cluster[row] + Math.round(4 * sure)];
    }
    masked = { mask: null, layer: null };
  }

  // A disc with a rim in the background's colour, which separates neighbours; it has none in a crowd,
  // which it would make pale. Shares of the pixels are in 128ths, so that colours times shares stay
  // below 32 bits.
  function stampOf(radius, rim, width) {
    const reach = Math.ceil(radius + 1);
    const limited = (value) => Math.min(1, Math.max(0, value));
    const [solid, edge] = [[], []];
    for (let y = -reach; y <= reach; y++) {
      for (let x = -reach; x <= reach; x++) {
        const distance = Math.hypot(x, y);
        const body = Math.round(128 * limited(radius - rim + 0.5 - distance));
        const cover = Math.round(128 * limited(radius + 0.5 - distance));
        if (body === 128) solid.push(y * width + x);
        else if (cover > 5) edge.push([y * width + x, body, cover === body ? 0 : cover]);
      }
    }
    const column = (number) => Int32Array.from(edge, (part) => part[number]);
    return {
      reach,
      area: Math.PI * radius ** 2,
      solid: Int32Array.from(solid),
      edge: column(0),
      body: column(1),
      cover: column(2),
    };
  }

  // Dots wider than the usual distance of neighbours are a crowd. Both are in pixels of the canvas.
  function rimOf(view, density, radius) {
    const space = (dotGrid.gap * density * Math.sqrt(view.scaleX * view.scaleY)) / (2 * radius);
    return radius > 2.2 ? 0.9 * Math.min(1, Math.max(0, 2 * space - 1)) : 0;
  }

  function blend(under, over, share) {
    const rest = 128 - share;
    const outer = (Math.imul(under & 0xff00ff, rest) + Math.imul(over & 0xff00ff, share)) >>> 7;
    const inner = (Math.imul(under & 0x00ff00, rest) + Math.imul(over & 0x00ff00, share)) >>> 7;
    return 0xff000000 | (outer & 0xff00ff) | (inner & 0x00ff00);
  }

  // Dots with their cells. A mask that changes must be a new one.
  function layerOf(mask) {
    if (!mask) return { xs, ys, shades, starts: dotGrid.starts };
    if (masked.mask !== mask) masked = { mask, layer: subset(mask) };
    return masked.layer;
  }

  function subset(mask) {
    const chosen = counting.where(counting.take(mask, rows));
    const starts = new Uint32Array(dotGrid.starts.length);
    let next = 0;
    for (let cell = 0; cell < starts.length; cell++) {
      while (chosen[next] < dotGrid.starts[cell]) next += 1;
      starts[cell] = next;
    }
    const [partX, partY, partShades] = [xs, ys, shades].map((column) => counting.take(column, chosen));
    return { xs: partX, ys: partY, shades: partShades, starts };
  }

  // The runs of dots to draw. Where cells are hardly larger than dots, only the uppermost dots of a
  // cell can be seen: those that cover it four times leave a fiftieth of the others.
  function visibleRuns(layer, view, density, stamp) {
    const margin = stamp.reach / density;
    const box = [-margin, -margin, view.width + margin, view.height + margin];
    const cellArea = (view.scaleX * view.scaleY * density ** 2) / dotGrid.side ** 2;
    const limit = cellArea > 8 * stamp.area ? 0 : Math.ceil((4 * cellArea) / stamp.area);
    return dotGrid.runs(view, box, limit, layer.starts);
  }

  // Draws the dots; those outside the mask are faint and below the others, if there is one.
  function draw(context, view, density, radius, mask) {
    const [width, height] = [context.canvas.width, context.canvas.height];
    if (!image || image.width !== width || image.height !== height) {
      image = context.createImageData(width, height);
      pixels = new Int32Array(image.data.buffer);
    }
    pixels.fill(background);
    const size = radius * density;
    const stamp = stampOf(size, rimOf(view, density, size), width);
    if (mask) drawLayer(layerOf(null), view, density, stamp, true);
    drawLayer(layerOf(mask), view, density, stamp, false);
    context.putImageData(image, 0, 0);
  }

  function drawLayer(layer, view, density, stamp, isFaint) {
    const [dotX, dotY, dotShades] = [layer.xs, layer.ys, layer.shades];
    const { reach, solid, edge, body, cover } = stamp;
    const { width, height } = image;
    const scaleX = (view.scaleX * density) / MAX_POSITION;
    const scaleY = (view.scaleY * density) / MAX_POSITION;
    const [left, top] = [Math.round(view.left * density), Math.round(view.top * density)];
    const runs = visibleRuns(layer, view, density, stamp);
    for (let run = 0; run < runs.length; run += 2) {
      for (let i = runs[run]; i < runs[run + 1]; i++) {
        const x = (dotX[i] * scaleX + left) | 0;
        const y = (dotY[i] * scaleY + top) | 0;
        if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
        const shade = isFaint ? faint : dotShades[i];
        const start = y * width + x;
        for (let k = 0; k < solid.length; k++) pixels[start + solid[k]] = shade;
        for (let k = 0; k < edge.length; k++) {
          const under = pixels[start + edge[k]];
          if (under === shade && !cover[k]) continue;
          const rimmed = cover[k] ? blend(under, background, cover[k]) : under;
          pixels[start + edge[k]] = body[k] ? blend(rimmed, shade, body[k]) : rimmed;
        }
      }
    }
  }

  // The row of the nearest dot within a distance, or -1.
  function at(view, x, y, within, mask = null) {
    const [scaleX, scaleY] = [view.scaleX / MAX_POSITION, view.scaleY / MAX_POSITION];
    const runs = dotGrid.runs(view, [x - within, y - within, x + within, y + within]);
    let [best, least] = [-1, within * within];
    for (let run = 0; run < runs.length; run += 2) {
      for (let i = runs[run]; i < runs[run + 1]; i++) {
        const row = rows[i];
        if (mask && !mask[row]) continue;
        const byX = xs[i] * scaleX + view.left - x;
        const byY = ys[i] * scaleY + view.top - y;
        const distance = byX * byX + byY * byY;
        if (distance > least || (distance === least && row < best)) continue;
        best = row;
        least = distance;
      }
    }
    return best;
  }

  const position = (view, row) => [
    (report.x[row] * view.scaleX) / MAX_POSITION + view.left,
    (report.y[row] * view.scaleY) / MAX_POSITION + view.top,
  ];

  function isInside(edges, x, y) {
    let found = false;
    for (let k = 0; k < edges.length; k++) {
      const [ax, ay, bx, by] = edges[k];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) found = !found;
    }
    return found;
  }

  function boxAround(line) {
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (const [x, y] of line) {
      box[0] = Math.min(box[0], x);
      box[1] = Math.min(box[1], y);
      box[2] = Math.max(box[2], x);
      box[3] = Math.max(box[3], y);
    }
    return box;
  }

  // The rows of the dots inside a polygon on the screen. The dots in each line of the grid are
  // compared with the few edges that pass it.
  function inside(view, line) {
    const edges = line.map(([x, y], i) => [...line.at(i - 1), x, y]);
    const [first, last, top, bottom] = dotGrid.cellsIn(view, boxAround(line));
    const [scaleX, scaleY] = [view.scaleX / MAX_POSITION, view.scaleY / MAX_POSITION];
    const found = new Uint32Array(n);
    let size = 0;
    for (let number = top; number <= bottom; number++) {
      const upper = (number << dotGrid.shift) * scaleY + view.top;
      const lower = ((number + 1) << dotGrid.shift) * scaleY + view.top;
      const passing = edges.filter(([, a, , b]) => Math.min(a, b) <= lower && Math.max(a, b) >= upper);
      const end = dotGrid.starts[number * dotGrid.side + last + 1];
      for (let i = dotGrid.starts[number * dotGrid.side + first]; i < end; i++) {
        const [x, y] = [xs[i] * scaleX + view.left, ys[i] * scaleY + view.top];
        if (isInside(passing, x, y)) found[size++] = rows[i];
      }
    }
    return found.slice(0, size);
  }

  return { n, paint, repaint, draw, at, position, inside };
})();
