"use strict";
// The data of all images, as script_data.py wrote it. File names are parsed on first use.
const report = (() => {
  const NO_CLUSTER = 65535;
  const UNKNOWN = 255;
  const CERTAIN = 250;
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const blocks = document.querySelectorAll(".file-block");
  const parsed = [];
  let members = null;

  function uint8(text) {
    const characters = atob(text ?? "");
    const numbers = new Uint8Array(characters.length);
    for (let i = 0; i < numbers.length; i++) numbers[i] = characters.charCodeAt(i);
    return numbers;
  }
  const uint16 = (text) => new Uint16Array(uint8(text).buffer);
  const share = (column, row) => (column[row] === UNKNOWN ? null : column[row] / CERTAIN);

  data.names[data.setAside] = say("aside");
  const { columns } = data;
  const cluster = uint16(columns.cluster);
  const second = uint16(columns.second);
  const confidence = uint8(columns.confidence);
  const secondConfidence = uint8(columns.secondConfidence);
  const outlier = uint8(columns.outlier);

  function files(row) {
    const number = Math.floor(row / data.filesPerBlock);
    parsed[number] ??= JSON.parse(blocks[number].textContent);
    return parsed[number];
  }
  const path = (row) => files(row).paths[row % data.filesPerBlock];
  const fileName = (row) => (data.hasImages ? path(row).split("/").pop() : path(row));

  function link(row) {
    if (!data.hasImages) return null;
    const known = files(row).links[row];
    if (known !== undefined) return known;
    return `${data.base}/${path(row).split("/").map(encodeURIComponent).join("/")}`;
  }

  function fullPath(row) {
    if (!data.folder) return path(row);
    const below = path(row).replaceAll("/", data.separator);
    return data.folder.endsWith(data.separator)
      ? data.folder + below
      : data.folder + data.separator + below;
  }

  function sortedMembers() {
    const doubt = confidence.map((value) => UNKNOWN - value);
    const bySureness = counting.sort(counting.rows(doubt.length), doubt, UNKNOWN + 1).rows;
    return counting.sort(bySureness, cluster, data.names.length);
  }

  // The rows of a cluster, by descending confidence.
  function membersOf(number) {
    members ??= sortedMembers();
    return members.rows.subarray(members.starts[number], members.starts[number + 1]);
  }

  // An image that the page shows as typical of a cluster, otherwise its surest one.
  const typical = new Map();
  function typicalOf(number) {
    if (!typical.has(number)) {
      const tile = document.querySelector(`#cluster-${number} .exemplars [data-row]`);
      typical.set(number, tile ? Number(tile.dataset.row) : membersOf(number)[0]);
    }
    return typical.get(number);
  }

  return {
    run: data.run,
    nImages: data.nImages,
    hasImages: data.hasImages,
    // By number; null where clusters were merged away. The last one is for images set aside.
    names: data.names,
    setAside: data.setAside,
    // Groups of clusters: levels, the coarsest first, of groups with a name and their clusters.
    tree: data.tree,
    renamed: new Set(data.renamed),
    thumbnailFolder: data.thumbnails,
    thumbnailsPerBlock: data.thumbnailsPerBlock,
    // How many images or rows, in words.
    things: (n) => say(data.hasImages ? "things.images" : "things.rows", { n }),
    x: uint16(columns.x),
    y: uint16(columns.y),
    cluster,
    confidence: (row) => share(confidence, row),
    second: (row) => (second[row] === NO_CLUSTER ? null : second[row]),
    secondConfidence: (row) => share(secondConfidence, row),
    isOutlier: (row) => outlier[row] === 1,
    path,
    fileName,
    fullPath,
    link,
    membersOf,
    typicalOf,
    // To be called after `cluster` was changed in place.
    clustersChanged: () => {
      members = null;
      typical.clear();
    },
  };
})();
