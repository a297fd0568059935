"use strict";
// Thumbnails on the map: instead of dots when zoomed in, as many as fit.
const photos = (() => {
  const MAX_KEPT = 400;
  const SIDE = 64;
  const FROM_ZOOM = 2.5;
  const loaded = new Map();

  // Images are shrunk once: without a graphics card, this takes a millisecond for each.
  function shrunk(image, side) {
    const density = Math.min(2, devicePixelRatio || 1);
    const scale = side / Math.max(image.naturalWidth, image.naturalHeight);
    const [width, height] = [image.naturalWidth * scale, image.naturalHeight * scale].map(Math.round);
    const canvas = element("canvas", { width: width * density, height: height * density });
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return { canvas, width, height };
  }

  // The thumbnail of a row with its size on the page, or null while it loads.
  function thumbnailOf(row, side, redraw) {
    const key = `${row}/${side}`;
    let found = loaded.get(key);
    if (found) {
      // Set again below, as the most recently used.
      loaded.delete(key);
    } else {
      found = { image: new Image(), thumbnail: null };
      const address = thumbnails.source(row);
      found.image.addEventListener("load", redraw);
      if (address) found.image.src = address;
    }
    loaded.set(key, found);
    if (loaded.size > MAX_KEPT) loaded.delete(loaded.keys().next().value);
    if (!found.thumbnail && found.image.complete && found.image.naturalWidth) {
      found.thumbnail = shrunk(found.image, side);
    }
    return found.thumbnail;
  }

  function drawFramed(context, cluster, { canvas, width, height }, x, y) {
    const [left, top] = [Math.round(x - width / 2), Math.round(y - height / 2)];
    context.fillStyle = `rgb(${colours.of(cluster).join(" ")})`;
    context.fillRect(left - 2, top - 2, width + 4, height + 4);
    context.drawImage(canvas, left, top, width, height);
  }

  // Rows whose thumbnails do not overlap, by descending confidence.
  function choose(view, mask) {
    const cell = SIDE + 6;
    const taken = new Map();
    const [scaleX, scaleY] = [view.scaleX / MAX_POSITION, view.scaleY / MAX_POSITION];
    const rows = [];
    for (let row = 0; row < report.x.length; row++) {
      const x = report.x[row] * scaleX + view.left;
      const y = report.y[row] * scaleY + view.top;
      if (x < 0 || y < 0 || x > view.width || y > view.height || (mask && !mask[row])) continue;
      rows.push([row, x, y]);
    }
    // Dots show more than a few thumbnails among very many images.
    if (rows.length > 1500) return [];
    rows.sort((a, b) => report.confidence(b[0]) - report.confidence(a[0]) || a[0] - b[0]);
    return rows.filter(([, x, y]) => {
      const [column, line] = [Math.floor(x / cell), Math.floor(y / cell)];
      for (let i = -1; i <= 1; i++) {
        for (let j = -1; j <= 1; j++) {
          const other = taken.get(`${column + i},${line + j}`);
          if (other && Math.abs(other[0] - x) < cell && Math.abs(other[1] - y) < cell) return false;
        }
      }
      taken.set(`${column},${line}`, [x, y]);
      return true;
    });
  }

  // A typical image of a cluster, shown while the images are dots.
  const typicalRows = new Map();
  function typical(cluster, view, redraw) {
    if (view.zoom >= FROM_ZOOM || !report.hasImages || view.width < 600) return null;
    if (!typicalRows.has(cluster)) {
      const tile = document.querySelector(`#cluster-${cluster} .exemplars [data-row]`);
      typicalRows.set(cluster, tile ? Number(tile.dataset.row) : report.membersOf(cluster)[0]);
    }
    const side = Math.round(Math.min(88, Math.max(56, view.width / 22)));
    return thumbnailOf(typicalRows.get(cluster), side, redraw);
  }

  function draw(context, view, mask, redraw) {
    if (view.zoom < FROM_ZOOM || !report.hasImages) return;
    for (const [row, x, y] of choose(view, mask)) {
      const thumbnail = thumbnailOf(row, SIDE, redraw);
      if (thumbnail) drawFramed(context, report.cluster[row], thumbnail, x, y);
    }
  }

  return { draw, drawFramed, typical };
})();
