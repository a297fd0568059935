"use strict";
// Names of clusters on the map, the largest first: they never overlap, and hide as few dots as
// possible. A typical image goes with each name where there is space.
const labels = (() => {
  const MAX_LETTERS = 30;
  const CELL = 12;
  // Width and height of the tools in the corner of a wide map.
  const TOOLS = [56, 264];
  const MAX_IMAGES = 40;
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const sizes = report.names.map((_, cluster) => report.membersOf(cluster).length);
  const bySize = report.names.map((_, cluster) => cluster).sort((a, b) => sizes[b] - sizes[a]);
  const isShown = (cluster) => report.x.length && sizes[cluster] && cluster !== report.setAside;
  const bounds = report.names.map((_, cluster) => (isShown(cluster) ? boundsOf(cluster) : null));
  const widths = new Map();
  // While the view moves without zooming, names and images keep their sides, so nothing flickers.
  let last = { zoom: 0, sides: new Map(), images: new Map() };

  // The part of the unit square that holds a cluster, without its outermost dots.
  function boundsOf(cluster) {
    const rows = report.membersOf(cluster);
    const edges = (column) => {
      const values = rows.map((row) => column[row]).sort((a, b) => a - b);
      const at = (share) => values[Math.round(share * (values.length - 1))] / MAX_POSITION;
      return [at(0.05), at(0.95)];
    };
    const [[x0, x1], [y0, y1]] = [edges(report.x), edges(report.y)];
    return [x0, y0, x1, y1];
  }

  function shown(name) {
    const characters = [...name.replace(/\s+/g, " ")];
    return characters.length > MAX_LETTERS
      ? `${characters.slice(0, MAX_LETTERS - 1).join("")}…`
      : characters.join("");
  }

  function widthOf(context, text) {
    const key = `${context.font}|${text}`;
    if (!widths.has(key)) widths.set(key, context.measureText(text).width);
    return widths.get(key);
  }

  // Counts the dots in each cell of the view, and sums the positions of each cluster's dots.
  function survey(view) {
    const [columns, lines] = [Math.ceil(view.width / CELL) + 1, Math.ceil(view.height / CELL) + 1];
    const cells = new Uint16Array(columns * lines);
    const counts = new Uint32Array(report.names.length);
    const sumX = new Float64Array(report.names.length);
    const sumY = new Float64Array(report.names.length);
    const [scaleX, scaleY] = [view.scaleX / MAX_POSITION, view.scaleY / MAX_POSITION];
    let total = 0;
    for (let row = 0; row < report.x.length; row++) {
      const x = report.x[row] * scaleX + view.left;
      const y = report.y[row] * scaleY + view.top;
      if (x < 0 || y < 0 || x >= view.width || y >= view.height) continue;
      const cluster = report.cluster[row];
      cells[((y / CELL) | 0) * columns + ((x / CELL) | 0)] += 1;
      counts[cluster] += 1;
      sumX[cluster] += x;
      sumY[cluster] += y;
      total += 1;
    }
    function hidden([x0, y0, x1, y1]) {
      const [firstLine, lastLine] = [Math.max(0, (y0 / CELL) | 0), Math.min(lines - 1, (y1 / CELL) | 0)];
      const [first, end] = [Math.max(0, (x0 / CELL) | 0), Math.min(columns - 1, (x1 / CELL) | 0)];
      let dots = 0;
      for (let line = firstLine; line <= lastLine; line++) {
        for (let column = first; column <= end; column++) dots += cells[line * columns + column];
      }
      return dots;
    }
    return { counts, sumX, sumY, total, hidden };
  }

  const overlaps = (a, b) => a[0] < b[2] && a[2] > b[0] && a[1] < b[3] && a[3] > b[1];
  const isFree = (box, boxes) => !boxes.some((other) => overlaps(box, other));
  const around = (x, y, wide, high) => [x - wide / 2, y - high / 2, x + wide / 2, y + high / 2];
  const isWithin = (box, view) =>
    box[0] >= 4 && box[1] >= 4 && box[2] <= view.width - 4 && box[3] <= view.height - 4;

  // Above, below or on its cluster; for a large one, in the middle of its visible part.
  function positionsFor(view, cluster, dots, high) {
    const [x0, y0, x1, y1] = bounds[cluster];
    const [left, right] = [x0 * view.scaleX + view.left, x1 * view.scaleX + view.left];
    const [top, bottom] = [y0 * view.scaleY + view.top, y1 * view.scaleY + view.top];
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const isInView = x > 0 && x < view.width && y > 0 && y < view.height;
    if (isInView && bottom - top < view.height / 3) {
      return [[x, top - high * 0.8], [x, bottom + high * 0.8], [x, y]];
    }
    const count = dots.counts[cluster];
    if (count < 3 || count < dots.total / 12) return isInView ? [[x, y]] : [];
    return [[dots.sumX[cluster] / count, dots.sumY[cluster] / count]];
  }

  function fontSize(cluster, view) {
    const relative = Math.sqrt(sizes[cluster] / Math.max(1, sizes[bySize[0]]));
    return Math.round((view.width < 600 ? 12 : 13) + (report.names.length <= 60 ? 3 : 1) * relative);
  }

  // Tries the side of the last drawing first, then the others by the number of dots they hide.
  function place(context, view, cluster, dots, boxes, sides) {
    const size = fontSize(cluster, view);
    context.font = `600 ${size}px ${FONT}`;
    const text = shown(report.names[cluster]);
    const wide = widthOf(context, text) + 12;
    const tried = positionsFor(view, cluster, dots, size)
      .map(([x, y], side) => {
        const kept = Math.min(view.width - wide / 2 - 4, Math.max(wide / 2 + 4, x));
        const box = around(kept, y, wide, size * 1.5);
        const rank = last.sides.get(cluster) === side ? -1 : dots.hidden(box) + side / 10;
        return { cluster, text, font: context.font, x: kept, y, box, side, rank };
      })
      .sort((a, b) => a.rank - b.rank);
    const found = tried.find(({ box }) => isWithin(box, view) && isFree(box, boxes));
    if (!found) return null;
    sides.set(cluster, found.side);
    boxes.push(found.box);
    return found;
  }

  // Finds a free side of a label for an image, and returns its centre.
  function placeImage(view, label, { width: wide, height: high }, dots, boxes, images) {
    const [x0, y0, x1, y1] = label.box;
    const [x, y] = [(x0 + x1) / 2, (y0 + y1) / 2];
    const allowed = Math.min(6, sizes[label.cluster] / 12);
    const tried = [[x, y0 - high / 2], [x, y1 + high / 2], [x1 + wide / 2, y], [x0 - wide / 2, y]]
      .map(([middleX, middleY], side) => {
        const box = around(middleX, middleY, wide + 4, high + 4);
        const dotsHidden = dots.hidden(box);
        const wasThere = last.images.get(label.cluster) === side;
        return { box, side, dotsHidden, wasThere, rank: wasThere ? -1 : dotsHidden + side / 10 };
      })
      .sort((a, b) => a.rank - b.rank);
    const found = tried.find(
      ({ box, dotsHidden, wasThere }) =>
        (wasThere || dotsHidden <= allowed)
        && isWithin(box, view)
        && boxes.every((other) => other === label.box || !overlaps(box, other)),
    );
    if (!found) return null;
    images.set(label.cluster, found.side);
    boxes.push(found.box);
    return [(found.box[0] + found.box[2]) / 2, (found.box[1] + found.box[3]) / 2];
  }

  // `imageOf` returns a typical image of a cluster, or null.
  function draw(context, view, ink, halo, found, imageOf) {
    if (last.zoom !== view.zoom) last = { zoom: view.zoom, sides: new Map(), images: new Map() };
    const dots = survey(view);
    const boxes = view.width < 768 ? [] : [[view.width - TOOLS[0], 0, view.width, TOOLS[1]]];
    const [sides, images] = [new Map(), new Map()];
    const order = [...bySize].sort((a, b) => last.sides.has(b) - last.sides.has(a));
    const placed = order
      .filter((cluster) => bounds[cluster] && (!found || found.clusters.has(cluster)))
      .map((cluster) => place(context, view, cluster, dots, boxes, sides))
      .filter(Boolean);
    for (const label of placed) {
      if (images.size >= MAX_IMAGES) break;
      const image = imageOf(label.cluster);
      const centre = image && placeImage(view, label, image, dots, boxes, images);
      if (centre) photos.drawFramed(context, label.cluster, image, ...centre);
    }
    last = { zoom: view.zoom, sides, images };
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    for (const { text, font, x, y } of placed) {
      context.font = font;
      context.strokeStyle = halo;
      context.strokeText(text, x, y);
      context.fillStyle = ink;
      context.fillText(text, x, y);
    }
  }

  return { draw, boundsOf };
})();
