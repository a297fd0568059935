"use strict";
// Close up, dots become pictures, as many as there is room for.
const photos = (() => {
  const KEPT = 400;
  const SIDE = 64;
  const FROM_ZOOM = 2.5;
  const LARGEST = 65535;
  const loaded = new Map();

  function imageOf(row, redraw) {
    let image = loaded.get(row);
    if (image) {
      // The last used is the last to go.
      loaded.delete(row);
    } else {
      image = new Image();
      const address = thumbnails.source(row);
      image.addEventListener("load", redraw);
      if (address) image.src = address;
    }
    loaded.set(row, image);
    if (loaded.size > KEPT) loaded.delete(loaded.keys().next().value);
    return image.complete && image.naturalWidth ? image : null;
  }

  // Rows whose pictures fit beside each other, the surest first.
  function choose(view, isIn) {
    const cell = SIDE + 6;
    const taken = new Map();
    const [scaleX, scaleY] = [view.scaleX / LARGEST, view.scaleY / LARGEST];
    const rows = [];
    for (let row = 0; row < report.x.length; row++) {
      const x = report.x[row] * scaleX + view.left;
      const y = report.y[row] * scaleY + view.top;
      if (x < 0 || y < 0 || x > view.width || y > view.height || (isIn && !isIn[row])) continue;
      rows.push([row, x, y]);
    }
    // Too many to tell apart: dots say more.
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

  // The picture that stands for a cluster while its dots are dots.
  function typical(cluster, view, redraw) {
    if (view.zoom >= FROM_ZOOM || !report.hasPictures || view.width < 600) return null;
    const tile = document.querySelector(`#cluster-${cluster} .exemplars [data-row]`);
    return tile && imageOf(Number(tile.dataset.row), redraw);
  }

  function draw(context, view, isIn, redraw) {
    if (view.zoom < FROM_ZOOM || !report.hasPictures) return;
    for (const [row, x, y] of choose(view, isIn)) {
      const image = imageOf(row, redraw);
      if (!image) continue;
      const shrink = SIDE / Math.max(image.naturalWidth, image.naturalHeight);
      const [width, height] = [image.naturalWidth * shrink, image.naturalHeight * shrink];
      context.fillStyle = `rgb(${colours.of(report.cluster[row]).join(" ")})`;
      context.fillRect(x - width / 2 - 2, y - height / 2 - 2, width + 4, height + 4);
      context.drawImage(image, x - width / 2, y - height / 2, width, height);
    }
  }

  return { draw, typical };
})();
