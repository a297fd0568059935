"use strict";
// Finding clusters by their words and images by the names of their files.
const search = (() => {
  const SHOWN_FILES = 2000;
  const input = document.getElementById("search");
  const listeners = [];
  let clusterTexts = null;
  let fileTexts = null;
  // What was found: numbers of clusters, rows of files; null where nothing is looked for.
  let found = null;

  function textsOfClusters() {
    return report.names.map((name, number) => {
      const section = document.getElementById(`cluster-${number}`);
      return words.plain(`${name} ${section?.dataset.words ?? ""}`);
    });
  }

  function textsOfFiles() {
    return Array.from({ length: report.nImages }, (_, row) => words.plain(report.path(row)));
  }

  function update() {
    const wanted = words.plain(input.value.trim());
    if (wanted) {
      clusterTexts ??= textsOfClusters();
      fileTexts ??= textsOfFiles();
      const clusters = new Set();
      clusterTexts.forEach((text, number) => { if (text.includes(wanted)) clusters.add(number); });
      const files = [];
      fileTexts.forEach((text, row) => { if (text.includes(wanted)) files.push(row); });
      found = { clusters, files, shownFiles: files.slice(0, SHOWN_FILES), isIn: flags(clusters, files) };
    } else {
      found = null;
    }
    for (const listener of listeners) listener(found);
  }

  function flags(clusters, files) {
    const isIn = new Uint8Array(report.nImages);
    for (let row = 0; row < isIn.length; row++) isIn[row] = clusters.has(report.cluster[row]) ? 1 : 0;
    for (const row of files) isIn[row] = 1;
    return isIn;
  }

  function clear() {
    if (!input.value) return;
    input.value = "";
    update();
  }

  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 80);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") document.getElementById("clusters").scrollIntoView();
    if (event.key === "Escape") {
      clear();
      input.blur();
    }
  });

  return {
    input,
    clear,
    found: () => found,
    onChange: (listener) => listeners.push(listener),
    namesChanged: () => { clusterTexts = null; },
  };
})();
