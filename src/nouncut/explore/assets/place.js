"use strict";
// What the grid shows and the map highlights: everything, a group, or what a search found.
const place = (() => {
  const listeners = [];
  const everyRow = () => {
    const rows = new Uint32Array(report.nImages);
    for (let row = 0; row < rows.length; row++) rows[row] = row;
    return rows;
  };
  const rowsWhere = (test) => everyRow().filter(test);
  // Every kind of place finds its title and rows again after an edit.
  const kinds = {
    all: () => ({ title: say("place.all"), rows: everyRow() }),
    group: ({ number }) => ({ title: report.names[number], rows: report.membersOf(number) }),
    groups: ({ node }) => ({
      title: node.name,
      rows: [].concat(...report.clustersBelow(node).map((one) => [...report.membersOf(one)])),
    }),
    outliers: () => ({ title: say("place.outliers"), rows: rowsWhere(report.isOutlier) }),
    aside: () => ({ title: say("aside"), rows: report.membersOf(report.setAside) }),
    duplicates: ({ sets }) => ({
      title: say("place.duplicates.found", { n: sets.length }),
      rows: sets.flat(),
      sets,
      empty: say("place.duplicates.none"),
    }),
    found: (found) => found,
  };
  let now = { kind: "all", ...kinds.all() };

  function maskOf({ kind, rows }) {
    if (kind === "all") return null;
    const mask = new Uint8Array(report.nImages);
    for (const row of rows) mask[row] = 1;
    return mask;
  }

  function show(kind, about = {}) {
    now = { kind, about, ...kinds[kind](about) };
    now.mask = maskOf(now);
    for (const listener of listeners) listener(now, true);
  }

  // After an edit the place may have other pictures, or be gone.
  function refresh() {
    const isGone = now.kind === "group" && !report.group(now.about.number);
    if (isGone || now.kind === "groups") {
      show("all");
      return;
    }
    now = { ...now, ...kinds[now.kind](now.about) };
    now.mask = maskOf(now);
    for (const listener of listeners) listener(now, false);
  }

  report.onChange(refresh);
  return {
    now: () => now,
    show,
    showGroup: (number) => show("group", { number }),
    showFound: (title, rows, { groups = [], empty = "" } = {}) => show("found", { title, rows, groups, empty }),
    onChange: (listener) => listeners.push(listener),
  };
})();
