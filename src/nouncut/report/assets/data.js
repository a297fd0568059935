"use strict";
// What is known of every image. Names of files are read when they are first asked for.
const report = (() => {
  const NONE = 65535;
  const UNKNOWN = 255;
  const SURE = 250;
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const blocks = document.querySelectorAll(".file-block");
  const parsed = [];
  let members = null;

  function bytes(text) {
    const characters = atob(text ?? "");
    const numbers = new Uint8Array(characters.length);
    for (let i = 0; i < numbers.length; i++) numbers[i] = characters.charCodeAt(i);
    return numbers;
  }
  const pairs = (text) => new Uint16Array(bytes(text).buffer);
  const share = (column, row) => (column[row] === UNKNOWN ? null : column[row] / SURE);

  const { columns } = data;
  const cluster = pairs(columns.cluster);
  const second = pairs(columns.second);
  const confidence = bytes(columns.confidence);
  const secondConfidence = bytes(columns.secondConfidence);
  const outlier = bytes(columns.outlier);

  function files(row) {
    const number = Math.floor(row / data.filesPerBlock);
    parsed[number] ??= JSON.parse(blocks[number].textContent);
    return parsed[number];
  }
  const path = (row) => files(row).paths[row % data.filesPerBlock];
  const fileName = (row) => (data.hasPictures ? path(row).split("/").pop() : path(row));

  function link(row) {
    if (!data.hasPictures) return null;
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

  // The rows of a cluster, the surest first.
  function membersOf(number) {
    if (!members) {
      members = data.names.map(() => []);
      for (let row = 0; row < data.nImages; row++) members[cluster[row]].push(row);
      for (const rows of members) rows.sort((a, b) => confidence[b] - confidence[a] || a - b);
    }
    return members[number];
  }

  return {
    run: data.run,
    nImages: data.nImages,
    hasPictures: data.hasPictures,
    names: data.names,
    renamed: new Set(data.renamed),
    thumbnailFolder: data.thumbnails,
    thumbnailsPerBlock: data.thumbnailsPerBlock,
    things: data.hasPictures ? ["image", "images"] : ["row", "rows"],
    x: pairs(columns.x),
    y: pairs(columns.y),
    cluster,
    confidence: (row) => share(confidence, row),
    second: (row) => (second[row] === NONE ? null : second[row]),
    secondConfidence: (row) => share(secondConfidence, row),
    isOutlier: (row) => outlier[row] === 1,
    path,
    fileName,
    fullPath,
    link,
    membersOf,
  };
})();

// Small helpers for text and elements.
const words = {
  number: (value) => value.toLocaleString("en"),
  counted: (value, [one, many]) => `${value.toLocaleString("en")} ${value === 1 ? one : many}`,
  // As in the rest of the page: only what is all or nothing is 100 or 0.
  percent(value) {
    if (value === null) return "unknown";
    if (value > 0 && value < 0.005) return "under 1\u00a0%";
    if (value >= 0.995 && value < 1) return "over 99\u00a0%";
    return `${Math.round(100 * value)}\u00a0%`;
  },
  // Without accents and capitals, for searching.
  plain: (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase(),
};

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
