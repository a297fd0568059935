"use strict";
// The clusters one by one: sorted, filtered, and with all their images where wanted.
const gallery = (() => {
  const list = document.getElementById("cluster-list");
  const covers = document.querySelector(".covers, .names");
  const sections = [...document.querySelectorAll(".cluster")];
  const entries = [...document.querySelectorAll("[data-cover]")];
  const status = document.getElementById("search-status");
  const foundBox = document.getElementById("found");
  const numberOf = (item) => Number(item.dataset.cover ?? item.dataset.cluster);
  const sectionOf = new Map(sections.map((section) => [numberOf(section), section]));
  let stopFilling = () => {};

  const orders = {
    size: (a, b) => a - b,
    name: (a, b) => report.names[a].localeCompare(report.names[b], undefined, { numeric: true }) || a - b,
    cohesion: (a, b) => cohesionOf(b) - cohesionOf(a) || a - b,
    loose: (a, b) => cohesionOf(a) - cohesionOf(b) || a - b,
  };
  const cohesionOf = (number) => Number(sectionOf.get(number).dataset.cohesion);

  function sort(by) {
    const byNumber = (a, b) => orders[by](numberOf(a), numberOf(b));
    list.append(...sections.sort(byNumber));
    covers.append(...entries.sort(byNumber));
  }

  function filter(found) {
    for (const item of [...sections, ...entries]) {
      item.hidden = found !== null && !found.clusters.has(numberOf(item));
    }
    stopFilling();
    foundBox.hidden = !found?.files.length;
    status.textContent = "";
    if (!found) return;
    const clusters = words.counted(found.clusters.size, ["cluster", "clusters"]);
    const files = words.counted(
      found.files.length,
      report.hasPictures ? ["file name", "file names"] : report.things,
    );
    status.textContent = `Found: ${clusters} and ${files}`;
    if (found.files.length) showFiles(found.shownFiles);
  }

  function showFiles(rows) {
    const strip = document.getElementById("found-strip");
    strip.allRows = rows;
    if (report.hasPictures) stopFilling = thumbnails.fill(strip, rows);
    else strip.replaceChildren(...rows.slice(0, 200).map(listed));
  }

  const listed = (row) => element("li", { dir: "auto" }, report.path(row));

  // All images of a cluster, the surest first.
  function toggleAll(button) {
    const number = Number(button.dataset.all);
    const box = document.getElementById(`cluster-${number}-all`);
    const isOpen = box.hidden;
    box.hidden = !isOpen;
    button.setAttribute("aria-expanded", isOpen);
    button.querySelector(".all-verb").textContent = isOpen ? "Hide" : "Show";
    box.stopFilling?.();
    if (!isOpen) {
      box.replaceChildren();
      return;
    }
    const rows = report.membersOf(number);
    box.allRows = rows;
    if (report.hasPictures) box.stopFilling = thumbnails.fill(box, rows);
    else box.append(...rows.map(listed));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-all], [data-show-on-map]");
    if (!button) return;
    if (button.dataset.all !== undefined) toggleAll(button);
    else map.showCluster(Number(button.dataset.showOnMap));
  });

  document.getElementById("sort")?.addEventListener("change", (event) => sort(event.target.value));
  search.onChange(filter);

  // A link to a cluster that the search hides must still lead somewhere.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.hidden) {
      search.clear();
      target.scrollIntoView();
    }
  });

  return { sort };
})();
