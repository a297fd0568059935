"use strict";
// The data of the run, which edits change in place. The map's scripts read the same names as in the
// report.
const report = (() => {
  const NO_CLUSTER = 65535;
  const UNKNOWN = 255;
  const CERTAIN = 250;
  const PATHS_PER_BLOCK = 1000;
  const { run, labels, positions } = globalThis.loaded;
  const n = run.nImages;
  const listeners = [];
  const blocks = new Map();
  const columns = {
    cluster: new Uint16Array(n),
    second: new Uint16Array(n),
    confidence: new Uint8Array(n),
    secondConfidence: new Uint8Array(n),
    outlier: new Uint8Array(n),
    byHand: new Uint8Array(n),
  };
  const names = [];
  let members = null;
  let groups = new Map();

  function readLabels(buffer) {
    let start = 0;
    for (const column of Object.values(columns)) {
      column.set(new column.constructor(buffer, start, n));
      start += column.byteLength;
    }
    members = null;
  }

  function readRun(found) {
    names.splice(0, names.length, ...found.names);
    names[found.setAside] = say("aside");
    groups = new Map(found.groups.map((group) => [group.number, group]));
    const { version, setAside, history, undo, redo, nOutliers, nSetAside } = found;
    Object.assign(made, { version, setAside, history, undo, redo, nOutliers, nSetAside });
    Object.assign(made, { given: new Set(found.given), root: found.tree, tree: levelsOf(found.tree) });
  }

  const clustersBelow = (node) =>
    (node.cluster === null ? node.children.flatMap(clustersBelow) : [node.cluster]);

  // Groups of clusters as the map's labels want them: levels, the coarsest first.
  function levelsOf(root) {
    const levels = [];
    let nodes = root.children.filter((node) => node.children.length);
    while (nodes.length) {
      levels.push(nodes.map((node) => ({ name: node.name, clusters: clustersBelow(node) })));
      nodes = nodes.flatMap((node) => node.children).filter((node) => node.children.length);
    }
    return levels;
  }

  async function reload() {
    const [found, buffer] = await Promise.all([server.get("/api/run"), server.bytes("/api/labels")]);
    readLabels(buffer);
    readRun(found);
    for (const listener of listeners) listener();
  }

  // The paths around a row; they are loaded in blocks.
  function pathsNear(row) {
    const block = Math.floor(row / PATHS_PER_BLOCK);
    if (!blocks.has(block)) {
      const loading = server
        .get("/api/paths", { start: block * PATHS_PER_BLOCK })
        .then(({ paths }) => { loading.paths = paths; return paths; });
      blocks.set(block, loading);
    }
    return blocks.get(block);
  }
  const pathOf = async (row) => (await pathsNear(row))[row % PATHS_PER_BLOCK];
  // Empty until it is loaded.
  const path = (row) => pathsNear(row).paths?.[row % PATHS_PER_BLOCK] ?? "";
  const fileOf = (text) => (run.hasImages ? text.split("/").pop() : text);

  const share = (column, row) => (column[row] === UNKNOWN ? null : column[row] / CERTAIN);

  function sortedMembers() {
    const doubt = columns.confidence.map((value) => UNKNOWN - value);
    const bySureness = counting.sort(counting.rows(n), doubt, UNKNOWN + 1).rows;
    return counting.sort(bySureness, columns.cluster, names.length);
  }

  // The rows of a group, by descending confidence.
  function membersOf(number) {
    members ??= sortedMembers();
    return members.rows.subarray(members.starts[number], members.starts[number + 1]);
  }

  const made = {
    nImages: n,
    nAll: run.nAll,
    canSplit: run.canSplit,
    hasImages: run.hasImages,
    canReadTexts: run.canReadTexts,
    hasGraph: run.hasGraph,
    exports: run.exports,
    names,
    cluster: columns.cluster,
    x: positions ? new Uint16Array(positions, 0, n) : new Uint16Array(0),
    y: positions ? new Uint16Array(positions, 2 * n, n) : new Uint16Array(0),
    // How many images or rows, in words.
    things: (number) => say(run.hasImages ? "things.images" : "things.rows", { n: number }),
    confidence: (row) => share(columns.confidence, row),
    second: (row) => (columns.second[row] === NO_CLUSTER ? null : columns.second[row]),
    secondConfidence: (row) => share(columns.secondConfidence, row),
    isOutlier: (row) => columns.outlier[row] === 1,
    isByHand: (row) => columns.byHand[row] === 1,
    group: (number) => groups.get(number),
    groups: () => [...groups.values()],
    membersOf,
    typicalOf: (number) => groups.get(number)?.exemplars[0] ?? membersOf(number)[0],
    clustersBelow,
    path,
    pathOf,
    fileName: (row) => fileOf(path(row)),
    fileNameOf: async (row) => fileOf(await pathOf(row)),
    reload,
    onChange: (listener) => listeners.push(listener),
  };
  readLabels(labels);
  readRun(run);
  return made;
})();
