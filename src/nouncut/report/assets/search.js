"use strict";
// Finds clusters by their words and images by their file names.
const search = (() => {
  const MAX_SHOWN = 2000;
  const input = document.getElementById("search");
  const listeners = [];
  let clusterTexts = null;
  let families = null;
  let fileTexts = null;
  // The clusters and rows found; null without a search.
  let found = null;

  function textsOfClusters() {
    return report.names.map((name, number) => {
      const section = document.getElementById(`cluster-${number}`);
      return section ? format.searchable(`${name} ${section.dataset.words}`) : "";
    });
  }

  // The names' families in WordNet: a dog is found by its breed, and by "animal". They never change.
  function textsOfFamilies() {
    return report.names.map((_, number) => {
      const section = document.getElementById(`cluster-${number}`);
      return section ? ` ${format.searchable(section.dataset.family)}` : "";
    });
  }

  const singular = (text) => text.replace(/(?<=[sxz]|[cs]h)es$|(?<![su])s$/, "");

  function textsOfFiles() {
    return Array.from({ length: report.nImages }, (_, row) => format.searchable(report.path(row)));
  }

  function update() {
    const wanted = format.searchable(input.value.trim());
    if (wanted) {
      clusterTexts ??= textsOfClusters();
      families ??= textsOfFamilies();
      fileTexts ??= textsOfFiles();
      const clusters = new Set();
      const kind = ` ${singular(wanted)}`;
      clusterTexts.forEach((text, number) => {
        if (text.includes(wanted) || families[number].includes(kind)) clusters.add(number);
      });
      const files = [];
      fileTexts.forEach((text, row) => { if (text.includes(wanted)) files.push(row); });
      found = { clusters, files, shownFiles: files.slice(0, MAX_SHOWN), mask: maskOf(clusters, files) };
    } else {
      found = null;
    }
    for (const listener of listeners) listener(found);
  }

  function maskOf(clusters, files) {
    const mask = new Uint8Array(report.nImages);
    for (let row = 0; row < mask.length; row++) mask[row] = clusters.has(report.cluster[row]) ? 1 : 0;
    for (const row of files) mask[row] = 1;
    return mask;
  }

  function clear() {
    if (!input.value) return;
    input.value = "";
    update();
  }

  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, 80);
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
