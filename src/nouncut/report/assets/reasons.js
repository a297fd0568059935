"use strict";
// Why an image is in its cluster: similar images and words, for it and for the second choice.
const reasons = (() => {
  let ofPage = null;

  function dataOfPage() {
    ofPage ??= JSON.parse(document.getElementById("reasons-data").textContent);
    return ofPage;
  }

  function part(title, rows, words) {
    if (!rows.length && !words.length) return [];
    const strip = element("div", { class: "reasons-strip" }, ...rows.map(thumbnails.tile));
    const parts = [element("p", { class: "reasons-title", dir: "auto" }, ...title)];
    if (rows.length) parts.push(strip);
    if (words.length) {
      parts.push(element("p", { class: "reasons-words", dir: "auto" }, say("reasons.words", { words: words.join(", ") })));
    }
    return parts;
  }

  const name = (number) =>
    element("span", { "data-cluster-name": number }, report.names[number]);

  function show(row, data = dataOfPage()) {
    const known = data.images[row];
    if (!known || report.cluster[row] === report.setAside) return [];
    const [near, words, nearSecond, wordsSecond] = known.map((list, place) =>
      (place % 2 ? list.map((word) => data.words[word]) : list));
    const parts = part(texts.pieces("reasons.own", { name: name(report.cluster[row]) }), near, words);
    const second = report.second(row);
    if (second !== null) {
      const title = texts.pieces("reasons.other", { name: name(second) });
      parts.push(...part(title, nearSecond, wordsSecond));
    }
    return parts.length ? [element("h3", {}, say("reasons")), ...parts] : [];
  }

  return { show };
})();
