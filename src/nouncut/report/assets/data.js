"use strict";
// Map positions are whole numbers from 0 to this.
const MAX_POSITION = 65535;

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

  // The rows of a cluster, by descending confidence.
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
    hasImages: data.hasImages,
    // By number; null where clusters were merged away. The last one is for images set aside.
    names: data.names,
    setAside: data.setAside,
    renamed: new Set(data.renamed),
    thumbnailFolder: data.thumbnails,
    thumbnailsPerBlock: data.thumbnailsPerBlock,
    things: data.hasImages ? ["image", "images"] : ["row", "rows"],
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
  };
})();

// Numbers and text as the page shows them.
const format = {
  number: (value) => value.toLocaleString("en"),
  counted: (value, [one, many]) => `${value.toLocaleString("en")} ${value === 1 ? one : many}`,
  // As in render.py: 0 % and 100 % only for exactly none and all.
  percent(value) {
    if (value === null) return "unknown";
    if (value > 0 && value < 0.005) return "under 1\u00a0%";
    if (value >= 0.995 && value < 1) return "over 99\u00a0%";
    return `${Math.round(100 * value)}\u00a0%`;
  },
  // Lower case, without accents.
  searchable: (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase(),
};

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
