"use strict";
// Thumbnails on the map: instead of dots where there is space, as many as fit.
const photos = (() => {
  const MAX_KEPT = 600;
  // Shrinking takes about a millisecond without a graphics card.
  const MAX_SHRUNK_AT_ONCE = 12;
  const SIDES = [40, 112];
  const SPACE = 6;
  // Sides are multiples of this, so that they change seldom.
  const STEP = 8;
  // Thumbnails begin when they are this many times as wide as the usual distance of dots, and hide
  // about two of them. Where one would hide more than this, the dots stay.
  const PER_GAP = 1.5;
  const MAX_HIDDEN = 6;
  // More images of one cell of the grid are never shown.
  const MAX_PER_CELL = 64;
  const loaded = new Map();
  let nShrunk = 0;
  // The rows shown last: they come first, so nothing flickers while the view moves.
  let shownRows = new Set();

  // The usual distance of dots, compared with the one at which thumbnails begin.
  const spaceAt = (view) => (PER_GAP * dotGrid.gap * Math.sqrt(view.scaleX * view.scaleY)) / SIDES[0];
  const hasSpace = (view) => report.hasImages && spaceAt(view) >= 1;

  // Half of the space that a zoom gives makes thumbnails larger, the other half makes them more.
  function sideOf(view) {
    const side = SIDES[0] * Math.sqrt(spaceAt(view));
    return Math.min(SIDES[1], STEP * Math.floor(side / STEP));
  }

  // The least zoom with thumbnails.
  const zoomWithSpace = (view) => (report.hasImages ? (1.01 * view.zoom) / spaceAt(view) : 1);

  function shrunk(image, side) {
    const density = Math.min(2, devicePixelRatio || 1);
    const scale = side / Math.max(image.naturalWidth, image.naturalHeight);
    const [width, height] = [image.naturalWidth * scale, image.naturalHeight * scale].map((size) =>
      Math.max(1, Math.round(size)),
    );
    const canvas = element("canvas", { width: width * density, height: height * density });
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return { canvas, width, height, side };
  }

  function load(row, redraw) {
    const entry = { image: new Image(), thumbnail: null };
    const address = thumbnails.source(row);
    entry.image.addEventListener("load", redraw);
    if (address) entry.image.src = address;
    return entry;
  }

  // The thumbnail of a row with its size on the page, or null while it loads. One of another size
  // is stretched until its turn comes to be made anew.
  function thumbnailOf(row, side, redraw) {
    const entry = loaded.get(row) ?? load(row, redraw);
    // Set again, as the most recently used.
    loaded.delete(row);
    loaded.set(row, entry);
    if (loaded.size > MAX_KEPT) loaded.delete(loaded.keys().next().value);
    const { image, thumbnail } = entry;
    if (!image.complete || !image.naturalWidth) return null;
    if (thumbnail?.side === side) return thumbnail;
    if (nShrunk < MAX_SHRUNK_AT_ONCE) {
      nShrunk += 1;
      entry.thumbnail = shrunk(image, side);
      return entry.thumbnail;
    }
    redraw();
    if (!thumbnail) return null;
    const scale = side / thumbnail.side;
    return { canvas: thumbnail.canvas, width: thumbnail.width * scale, height: thumbnail.height * scale };
  }

  function drawFramed(context, cluster, { canvas, width, height }, x, y) {
    const [left, top] = [Math.round(x - width / 2), Math.round(y - height / 2)];
    context.fillStyle = `rgb(${colours.of(cluster).join(" ")})`;
    context.fillRect(left - 2, top - 2, width + 4, height + 4);
    context.drawImage(canvas, left, top, width, height);
  }

  // The images in view: those shown last, then the others by descending confidence.
  function candidates(view, side, mask) {
    const found = [];
    const runs = dotGrid.runs(view, [-side, -side, view.width + side, view.height + side], MAX_PER_CELL);
    for (let run = 0; run < runs.length; run += 2) {
      for (let i = runs[run]; i < runs[run + 1]; i++) {
        const row = dotGrid.rows[i];
        if (mask && !mask[row]) continue;
        const [x, y] = points.position(view, row);
        found.push({ row, x, y, rank: shownRows.has(row) ? 2 : (report.confidence(row) ?? 1) });
      }
    }
    return found.sort((a, b) => b.rank - a.rank || a.row - b.row);
  }

  // Those whose thumbnails neither overlap nor hide many dots.
  function choose(view, side, mask) {
    const cell = side + SPACE;
    const taken = new Map();
    const key = (column, line) => column * 65536 + line;
    return candidates(view, side, mask).filter(({ x, y }) => {
      const [column, line] = [Math.floor(x / cell), Math.floor(y / cell)];
      for (let i = -1; i <= 1; i++) {
        for (let j = -1; j <= 1; j++) {
          const other = taken.get(key(column + i, line + j));
          if (other && Math.abs(other[0] - x) < cell && Math.abs(other[1] - y) < cell) return false;
        }
      }
      const box = [x - side / 2, y - side / 2, x + side / 2, y + side / 2];
      if (!mask && dotGrid.count(view, box) > MAX_HIDDEN) return false;
      taken.set(key(column, line), [x, y]);
      return true;
    });
  }

  // A typical image of a cluster, shown while the images are dots.
  function typical(cluster, view, redraw) {
    if (!report.hasImages || hasSpace(view) || view.width < 600) return null;
    const row = report.typicalOf(cluster);
    const side = Math.round(Math.min(88, Math.max(56, view.width / 22)));
    return thumbnailOf(row, side, redraw);
  }

  // Draws the thumbnails, and returns their boxes. To be called first for each frame.
  function draw(context, view, mask, redraw) {
    nShrunk = 0;
    const side = sideOf(view);
    const chosen = hasSpace(view) ? choose(view, side, mask) : [];
    shownRows = new Set(chosen.map(({ row }) => row));
    const boxes = [];
    for (const { row, x, y } of chosen) {
      const thumbnail = thumbnailOf(row, side, redraw);
      if (!thumbnail) continue;
      drawFramed(context, report.cluster[row], thumbnail, x, y);
      const [reachX, reachY] = [thumbnail.width / 2 + 2, thumbnail.height / 2 + 2];
      boxes.push([x - reachX, y - reachY, x + reachX, y + reachY]);
    }
    return boxes;
  }

  return { draw, drawFramed, typical, zoomWithSpace, shownRows: () => shownRows };
})();
