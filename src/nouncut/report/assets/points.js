"use strict";
// The dots of the map. They are written into the pixels directly: a few milliseconds for fifty
// thousand dots, and the same look in every browser.
const points = (() => {
  const n = report.x.length;
  const order = shuffled(n);
  const shades = new Uint32Array(n);
  let background = 0;
  let faint = 0;
  let image = null;
  let pixels = null;

  // A fixed random order, so that no cluster covers all others.
  function shuffled(size) {
    const rows = Uint32Array.from({ length: size }, (_, i) => i);
    let seed = 1;
    for (let i = size - 1; i > 0; i--) {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      const j = seed % (i + 1);
      [rows[i], rows[j]] = [rows[j], rows[i]];
    }
    return rows;
  }

  const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  const mixed = (from, to, share) => from.map((value, i) => Math.round(value + share * (to[i] - value)));

  // Dots of unsure images are paler.
  function paint(backgroundColour, faintColour) {
    background = packed(backgroundColour);
    faint = packed(faintColour);
    const steps = report.names.map((_, cluster) => {
      const full = colours.of(cluster);
      return [0, 1, 2, 3, 4].map((step) => packed(mixed(backgroundColour, full, 0.4 + 0.15 * step)));
    });
    for (let row = 0; row < n; row++) {
      const sure = report.confidence(row) ?? 1;
      shades[row] = steps[report.cluster[row]][Math.round(4 * sure)];
    }
  }

  // A disc with a thin rim in the background's colour, which separates crowded dots.
  function stampOf(radius) {
    const reach = Math.ceil(radius + 1);
    const rim = radius > 2.2 ? 0.9 : 0;
    const parts = [];
    for (let y = -reach; y <= reach; y++) {
      for (let x = -reach; x <= reach; x++) {
        const distance = Math.hypot(x, y);
        const body = Math.min(1, Math.max(0, radius - rim + 0.5 - distance));
        const cover = Math.min(1, Math.max(0, radius + 0.5 - distance));
        if (cover > 0.04) parts.push([x, y, Math.round(body * 256), Math.round(cover * 256)]);
      }
    }
    return { reach, parts };
  }

  function blend(under, over, share) {
    const rest = 256 - share;
    const outer = ((under & 0xff00ff) * rest + (over & 0xff00ff) * share) >>> 8;
    const inner = ((under & 0x00ff00) * rest + (over & 0x00ff00) * share) >>> 8;
    return (0xff000000 | (outer & 0xff00ff) | (inner & 0x00ff00)) >>> 0;
  }

  // Draws all dots; those outside the mask are faint, if there is one.
  function draw(context, view, density, radius, mask) {
    const [width, height] = [context.canvas.width, context.canvas.height];
    if (!image || image.width !== width || image.height !== height) {
      image = context.createImageData(width, height);
      pixels = new Uint32Array(image.data.buffer);
    }
    pixels.fill(background);
    const { reach, parts } = stampOf(radius * density);
    const count = parts.length;
    const offsets = Int32Array.from(parts, ([x, y]) => y * width + x);
    const body = Int32Array.from(parts, (part) => part[2]);
    const cover = Int32Array.from(parts, (part) => part[3]);
    const scaleX = (view.scaleX * density) / MAX_POSITION;
    const scaleY = (view.scaleY * density) / MAX_POSITION;
    const [left, top] = [Math.round(view.left * density), Math.round(view.top * density)];
    for (let pass = mask ? 0 : 1; pass < 2; pass++) {
      for (let i = 0; i < n; i++) {
        const row = order[i];
        if (mask && mask[row] !== pass) continue;
        const x = (report.x[row] * scaleX + left) | 0;
        const y = (report.y[row] * scaleY + top) | 0;
        if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
        const shade = pass ? shades[row] : faint;
        const start = y * width + x;
        for (let k = 0; k < count; k++) {
          const at = start + offsets[k];
          if (body[k] === 256) {
            pixels[at] = shade;
          } else {
            const rimmed = cover[k] === body[k] ? pixels[at] : blend(pixels[at], background, cover[k]);
            pixels[at] = body[k] ? blend(rimmed, shade, body[k]) : rimmed;
          }
        }
      }
    }
    context.putImageData(image, 0, 0);
  }

  // The row of the nearest dot within a distance, or -1.
  function at(view, x, y, within, mask = null) {
    const [scaleX, scaleY] = [view.scaleX / MAX_POSITION, view.scaleY / MAX_POSITION];
    let [best, least] = [-1, within * within];
    for (let row = 0; row < n; row++) {
      if (mask && !mask[row]) continue;
      const byX = report.x[row] * scaleX + view.left - x;
      const byY = report.y[row] * scaleY + view.top - y;
      const distance = byX * byX + byY * byY;
      if (distance <= least) [best, least] = [row, distance];
    }
    return best;
  }

  const position = (view, row) => [
    (report.x[row] * view.scaleX) / MAX_POSITION + view.left,
    (report.y[row] * view.scaleY) / MAX_POSITION + view.top,
  ];

  // The rows of the dots inside a polygon on the screen.
  function inside(view, line) {
    const xs = line.map(([x]) => x);
    const ys = line.map(([, y]) => y);
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const rows = [];
    for (let row = 0; row < n; row++) {
      const [x, y] = position(view, row);
      if (x < x0 || x > x1 || y < y0 || y > y1) continue;
      let isInside = false;
      for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
        const [ax, ay] = line[i];
        const [bx, by] = line[j];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) isInside = !isInside;
      }
      if (isInside) rows.push(row);
    }
    return rows;
  }

  return { n, paint, draw, at, position, inside };
})();
