"use strict";
// Why an image is in its cluster: similar images and words, for it and for the second choice.
const reasons = (() => {
  let data = null;

  function found(row) {
    data ??= JSON.parse(document.getElementById("reasons-data").textContent);
    return data.images[row];
  }

  function part(title, rows, words) {
    if (!rows.length && !words.length) return [];
    const strip = element("div", { class: "reasons-strip" }, ...rows.map(thumbnails.tile));
    const parts = [element("p", { class: "reasons-title", dir: "auto" }, ...title)];
    if (rows.length) parts.push(strip);
    if (words.length) {
      const list = words.map((word) => data.words[word]).join(", ");
      parts.push(element("p", { class: "reasons-words", dir: "auto" }, `Words: ${list}`));
    }
    return parts;
  }

  const name = (number) =>
    element("span", { "data-cluster-name": number }, report.names[number]);

  function show(row) {
    const known = found(row);
    if (!known) return [];
    const [near, words, nearSecond, wordsSecond] = known;
    if (report.cluster[row] === report.setAside) return [];
    const parts = part(["Most alike in ", name(report.cluster[row])], near, words);
    const second = report.second(row);
    if (second !== null) {
      const title = ["Most alike in ", name(second), ", the second choice"];
      parts.push(...part(title, nearSecond, wordsSecond));
    }
    return parts.length ? [element("h3", {}, "Why here?"), ...parts] : [];
  }

  return { show };
})();
