"use strict";
// Names on the map: they never overlap, and hide as few dots as possible. A typical image goes with
// the name of a cluster where there is space.
const labels = (() => {
  const MAX_IMAGES = 40;
  // A thumbnail below a name is as bad as this many dots.
  const THUMBNAIL = 4;
  // Width and height of the tools in the corner of a wide map.
  const TOOLS = [56, 264];
  const { boxOf, overlaps } = mapNames;
  // Names and images keep their sides while the view moves, so nothing flickers.
  let last = { zoom: 0, sides: new Map(), images: new Map() };

  const isFree = (box, boxes) => !boxes.some((other) => overlaps(box, other));
  const around = (x, y, wide, high) => [x - wide / 2, y - high / 2, x + wide / 2, y + high / 2];
  const isWithin = (box, view) =>
    box[0] >= 4 && box[1] >= 4 && box[2] <= view.width - 4 && box[3] <= view.height - 4;

  // The middle of what is visible of a region, and how many of its dots are.
  function visibleMiddle(view, { part, size }) {
    let [sum, sumX, sumY] = [0, 0, 0];
    const [wide, high] = [view.scaleX / part.side, view.scaleY / part.side];
    for (const [column, line, weight] of part.cells) {
      const [left, top] = [column * wide + view.left, line * high + view.top];
      const [x0, x1] = [Math.max(0, left), Math.min(view.width, left + wide)];
      const [y0, y1] = [Math.max(0, top), Math.min(view.height, top + high)];
      if (x0 >= x1 || y0 >= y1) continue;
      const visible = (weight * (x1 - x0) * (y1 - y0)) / (wide * high);
      sum += visible;
      sumX += (visible * (x0 + x1)) / 2;
      sumY += (visible * (y0 + y1)) / 2;
    }
    return { x: sumX / sum, y: sumY / sum, count: sum * size };
  }

  // How far thumbnails reach beyond their dots.
  const reachOf = (boxes) => boxes.reduce((most, box) => Math.max(most, (box[3] - box[1]) / 2), 0);

  // Above, below, or in one of many places in a group.
  function positionsForHeading([left, top, right, bottom], high) {
    const shares = [0.5, 0.3, 0.7, 0.1, 0.9];
    const inside = shares.flatMap((down) =>
      shares.map((across) => [left + across * (right - left), top + down * (bottom - top)]),
    );
    const x = (left + right) / 2;
    return [[x, top - high * 0.8], [x, bottom + high * 0.8], ...inside];
  }

  // Above, below or on its region, or farther away where thumbnails reach; on a large one, in the middle
  // of its visible part. A region that is hardly in view has none.
  function positionsFor(view, region, high, reach) {
    const [left, top, right, bottom] = boxOf(view, region.part);
    if (right < 0 || left > view.width || bottom < 0 || top > view.height) return [];
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const isInView = x > 0 && x < view.width && y > 0 && y < view.height;
    const isLarge = bottom - top > view.height / 3 || right - left > view.width / 3;
    const middle = isLarge || !isInView ? visibleMiddle(view, region) : { x, y };
    if (!isInView && (middle.count < 3 || middle.count < countAll(view) / 12)) return [];
    const over = (Math.max(0, left) + Math.min(view.width, right)) / 2;
    const [near, far] = [high * 0.8, high * 0.8 + reach];
    const positions = [[over, top - near], [over, bottom + near], [middle.x, middle.y]];
    return reach ? [...positions, [over, top - far], [over, bottom + far]] : positions;
  }
  const countAll = (view) => dotGrid.count(view, [0, 0, view.width, view.height]);

  // The side that hides the fewest dots; that of the last drawing stays until another is much better.
  function best(view, tried, before, thumbnailBoxes = []) {
    for (const one of tried) {
      const covered = thumbnailBoxes.filter((other) => overlaps(one.box, other));
      const hidden = dotGrid.count(view, one.box) + THUMBNAIL * covered.length;
      one.isOnThumbnail = covered.length > 0;
      one.rank = one.side === before ? hidden / 2 - 1 : hidden + one.side / 10;
      one.hidden = hidden;
    }
    return tried.sort((a, b) => a.rank - b.rank)[0];
  }

  // Extra names and images must not hide more dots than this.
  const isAllowed = ({ hidden, side }, region, before) =>
    hidden <= (side === before ? 2 : 1) * Math.min(6, region.size / 12);

  function place(context, view, { region, isHeading, isExtra }, largest, boxes, thumbnailBoxes) {
    const style = mapNames.styleOf(region, view, largest);
    const [wide, high] = mapNames.spaceFor(context, view, region, largest);
    const positions = isHeading
      ? positionsForHeading(boxOf(view, region.part), style.size)
      : positionsFor(view, region, style.size, reachOf(thumbnailBoxes));
    const tried = positions
      .map(([x, y], side) => {
        const kept = Math.min(view.width - wide / 2 - 4, Math.max(wide / 2 + 4, x));
        return { region, style, isHeading, x: kept, y, box: around(kept, y, wide, high), side };
      })
      .filter(({ box }) => isWithin(box, view) && isFree(box, boxes));
    const before = last.sides.get(region);
    const found = best(view, tried, before, thumbnailBoxes);
    if (!found || (isExtra && !isAllowed(found, region, before))) return null;
    boxes.push(found.box);
    return found;
  }

  // Finds a free side of a label for an image, and returns its centre.
  function placeImage(view, label, { width: wide, height: high }, boxes, images) {
    const [x0, y0, x1, y1] = label.box;
    const [x, y] = [(x0 + x1) / 2, (y0 + y1) / 2];
    const before = last.images.get(label.region);
    const tried = [[x, y0 - high / 2], [x, y1 + high / 2], [x1 + wide / 2, y], [x0 - wide / 2, y]]
      .map(([middleX, middleY], side) => ({ side, box: around(middleX, middleY, wide + 4, high + 4) }))
      .filter(({ box }) => isWithin(box, view) && boxes.every((other) => other === label.box || !overlaps(box, other)));
    const found = best(view, tried, before);
    if (!found || !isAllowed(found, label.region, before)) return null;
    images.set(label.region, found.side);
    boxes.push(found.box);
    return [(found.box[0] + found.box[2]) / 2, (found.box[1] + found.box[3]) / 2];
  }

  // On thumbnails, a name has a plate below it.
  function write(context, { region, style, x, y, box, isHeading, isOnThumbnail }, ink, halo) {
    const text = mapNames.textOf(region);
    mapNames.use(context, style);
    context.fillStyle = context.strokeStyle = halo;
    if (isOnThumbnail) {
      context.beginPath();
      context.roundRect(box[0], box[1], box[2] - box[0], box[3] - box[1], 5);
      context.fill();
    } else {
      context.strokeText(text, x, y);
    }
    context.globalAlpha = isHeading ? 0.6 : 1;
    context.fillStyle = ink;
    context.fillText(text, x, y);
    context.globalAlpha = 1;
  }

  // Draws the names around the boxes of thumbnails, where possible. `imageOf` returns a typical image
  // of a cluster, or null.
  function draw(context, view, ink, halo, found, thumbnailBoxes, imageOf) {
    const boxes = view.width < 768 ? [] : [[view.width - TOOLS[0], 0, view.width, TOOLS[1]]];
    const images = new Map();
    const largest = regions.ofClusters().reduce((most, { size }) => Math.max(most, size), 0);
    // While the view moves without zooming, the names that are there stay.
    const isKept = (region) => view.zoom === last.zoom && last.sides.has(region);
    const placed = mapNames.wanted(context, view, found, largest, isKept)
      .map((one) => place(context, view, one, largest, boxes, thumbnailBoxes))
      .filter(Boolean);
    for (const label of placed) {
      if (images.size >= MAX_IMAGES) break;
      const image = label.region.cluster === null ? null : imageOf(label.region.cluster);
      const centre = image && placeImage(view, label, image, boxes, images);
      if (centre) photos.drawFramed(context, label.region.cluster, image, ...centre);
    }
    const sides = new Map(placed.map(({ region, side }) => [region, side]));
    last = { zoom: view.zoom, sides, images };
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    for (const label of placed) write(context, label, ink, halo);
    context.letterSpacing = "0px";
    return placed;
  }

  function refresh() {
    regions.refresh();
    last = { zoom: 0, sides: new Map(), images: new Map() };
  }

  return { draw, refresh };
})();
