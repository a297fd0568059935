"use strict";
// Where clusters and groups of clusters are on the map: the largest dense part of each.
const regions = (() => {
  // More dots of one region make its part no clearer.
  const SAMPLE = 4096;
  // Dots outside the inner nine tenths of a part do not widen it.
  const EDGE = 0.05;
  let byCluster = [];
  let tops = [];

  // Some rows of a region, evenly through all of its clusters.
  function sampleOf(clusters) {
    const members = clusters.map((number) => report.membersOf(number));
    const step = Math.max(1, members.reduce((sum, rows) => sum + rows.length, 0) / SAMPLE);
    const found = [];
    for (const rows of members) {
      for (let i = 0; i < rows.length; i += step) found.push(rows[Math.floor(i)]);
    }
    return found;
  }

  // Numbers of the cells that are connected with the first one, diagonally too.
  function connected(counts, side, first, least, seen) {
    const [part, open] = [[], [first]];
    seen[first] = 1;
    while (open.length) {
      const cell = open.pop();
      part.push(cell);
      const [x, y] = [cell % side, Math.floor(cell / side)];
      for (let j = Math.max(0, y - 1); j <= Math.min(side - 1, y + 1); j++) {
        for (let i = Math.max(0, x - 1); i <= Math.min(side - 1, x + 1); i++) {
          const next = j * side + i;
          if (seen[next] || counts[next] < least) continue;
          seen[next] = 1;
          open.push(next);
        }
      }
    }
    return part;
  }

  function densestPart(counts, side) {
    // Thin bridges connect nothing.
    const least = Math.max(1, 0.1 * counts.reduce((a, b) => Math.max(a, b), 0));
    const seen = new Uint8Array(counts.length);
    let best = { cells: [], size: 0 };
    for (let cell = 0; cell < counts.length; cell++) {
      if (seen[cell] || counts[cell] < least) continue;
      const cells = connected(counts, side, cell, least, seen);
      const size = cells.reduce((sum, one) => sum + counts[one], 0);
      if (size > best.size) best = { cells, size };
    }
    return best;
  }

  function edgesOf(rows, column) {
    const values = Float64Array.from(rows, (row) => column[row] / MAX_POSITION).sort();
    const at = (share) => values[Math.round(share * (values.length - 1))];
    return [at(EDGE), at(1 - EDGE)];
  }

  function boundsAround(rows) {
    const [[x0, x1], [y0, y1]] = [edgesOf(rows, report.x), edgesOf(rows, report.y)];
    return [x0, y0, x1, y1];
  }

  // The bounds of the part, in shares of the map, its cells with their weights, and how much of the
  // region it holds. A few dots or the gaps between the clusters of a group divide no part, so its
  // cells are larger then.
  function partOf(clusters) {
    const rows = sampleOf(clusters);
    const most = clusters.length > 1 ? 16 : 64;
    const side = Math.min(most, Math.max(8, 2 ** Math.round(Math.log2(3 * Math.sqrt(rows.length)))));
    const cellOf = (row) =>
      Math.floor((report.y[row] * side) / 65536) * side + Math.floor((report.x[row] * side) / 65536);
    const counts = new Uint32Array(side * side);
    for (const row of rows) counts[cellOf(row)] += 1;
    const { cells, size } = densestPart(counts, side);
    const isInPart = new Set(cells);
    return {
      bounds: boundsAround(rows.filter((row) => isInPart.has(cellOf(row)))),
      cells: cells.map((cell) => [cell % side, Math.floor(cell / side), counts[cell] / rows.length]),
      side,
      share: size / rows.length,
    };
  }

  const sizeOf = (clusters) => clusters.reduce((sum, number) => sum + report.membersOf(number).length, 0);

  function regionOf(clusters, cluster, name, children) {
    return { cluster, clusters, name, children, size: sizeOf(clusters), part: partOf(clusters) };
  }

  // The groups of a level, with the regions of the level below as their children.
  function joined(level, below) {
    const groups = level.map(({ name, clusters }) => {
      const known = clusters.filter((number) => byCluster[number]);
      const children = below.filter((one) => known.includes(one.clusters[0]));
      return children.length > 1 ? regionOf(known, null, name, children) : null;
    }).filter(Boolean);
    const taken = new Set(groups.flatMap((group) => group.children));
    return [...groups, ...below.filter((one) => !taken.has(one))];
  }

  // To be called after clusters, their names or the tree have changed.
  function refresh() {
    const isShown = (number) =>
      report.x.length && number !== report.setAside && report.membersOf(number).length;
    byCluster = report.names.map((_, number) => (isShown(number) ? regionOf([number], number, null, []) : null));
    tops = byCluster.filter(Boolean);
    for (const level of [...(report.tree ?? [])].reverse()) tops = joined(level, tops);
  }

  // The part of the unit square that holds a cluster, without its outermost dots.
  const boundsOf = (cluster) => boundsAround(sampleOf([cluster]));

  refresh();
  return {
    refresh,
    boundsOf,
    ofClusters: () => byCluster.filter(Boolean),
    // Groups, and clusters that are in no group.
    tops: () => tops,
  };
})();
