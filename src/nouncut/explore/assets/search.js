"use strict";
// Search as you type: pictures by what the text says, groups by name, files by name; more like one.
const search = (() => {
  const WAIT = 120;
  // At most so many pictures that are only similar.
  const SIMILAR = 100;
  const input = document.getElementById("search");
  const listeners = [];
  let timer = 0;
  let stop = null;

  function title(text, { rows, nByName }) {
    if (!nByName) return say("place.found", { text });
    const more = rows.length - nByName;
    return say(more ? "place.found.more" : "place.found.named", { text, n: nByName, more });
  }

  async function look() {
    const text = input.value.trim();
    stop?.abort();
    if (!text) {
      if (place.now().kind === "found") place.show("all");
      return;
    }
    stop = new AbortController();
    try {
      const found = await server.get("/api/search", { text, n: SIMILAR }, stop.signal);
      const named = new Set(found.files);
      const rows = [...found.files, ...found.rows.filter((row) => !named.has(row))];
      place.showFound(title(text, found), rows, { groups: found.groups, empty: found.problem });
    } catch (problem) {
      if (problem.name !== "AbortError") toast.say(problem.message);
    }
  }

  function clear() {
    if (!input.value) return;
    input.value = "";
    look();
  }

  async function like(row) {
    try {
      const found = await server.get("/api/like", { row, n: SIMILAR });
      const name = await report.fileNameOf(row);
      place.showFound(say("place.like", { name }), [row, ...found.rows]);
    } catch (problem) {
      toast.say(problem.message);
    }
  }

  async function duplicates() {
    try {
      const { groups } = await server.get("/api/duplicates");
      place.show("duplicates", { sets: groups });
    } catch (problem) {
      toast.say(problem.message);
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, WAIT);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "ArrowDown") {
      event.preventDefault();
      pictures.focus();
    }
    if (event.key === "Escape") {
      clear();
      input.blur();
    }
  });
  // The map highlights what the grid shows.
  place.onChange((now) => {
    if (now.kind !== "found") input.value = "";
    const clusters = new Set();
    if (now.mask) for (const row of now.rows) clusters.add(report.cluster[row]);
    for (const listener of listeners) listener(now.mask ? { mask: now.mask, clusters } : null);
  });
  return { input, look, clear, like, duplicates, onChange: (listener) => listeners.push(listener) };
})();
