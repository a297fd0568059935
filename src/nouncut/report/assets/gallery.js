"use strict";
// The list of clusters: sorting, filtering, and showing all images of a cluster.
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
    size: (a, b) => sizeOf(b) - sizeOf(a) || a - b,
    name: (a, b) => report.names[a].localeCompare(report.names[b], undefined, { numeric: true }) || a - b,
    cohesion: (a, b) => cohesionOf(b) - cohesionOf(a) || a - b,
    loose: (a, b) => cohesionOf(a) - cohesionOf(b) || a - b,
  };
  const sizeOf = (number) => Number(sectionOf.get(number).dataset.size);
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
    const clusters = say("clusters", { n: found.clusters.size });
    const n = found.files.length;
    const files = report.hasImages ? say("file_names", { n }) : report.things(n);
    status.textContent = say("search.found", { clusters, files });
    if (found.files.length) showFiles(found.shownFiles);
  }

  function showFiles(rows) {
    const strip = document.getElementById("found-strip");
    strip.allRows = rows;
    if (report.hasImages) stopFilling = thumbnails.fill(strip, rows);
    else strip.replaceChildren(...rows.slice(0, 200).map(listed));
  }

  const listed = (row) => element("li", { dir: "auto" }, report.path(row));

  // Shows all images of a cluster, by descending confidence, or hides them.
  function toggleAll(button) {
    const number = Number(button.dataset.all);
    const box = document.getElementById(`cluster-${number}-all`);
    const isOpen = box.hidden;
    box.hidden = !isOpen;
    button.setAttribute("aria-expanded", isOpen);
    const rows = report.membersOf(number);
    const all = sizeOf(number);
    const verbs = rows.length < all ? ["cluster.some.show", "cluster.some.hide"] : ["cluster.all.show", "cluster.all.hide"];
    const verb = verbs[Number(isOpen)];
    button.querySelector(".all-verb").textContent = say(verb, { n: rows.length, all });
    box.stopFilling?.();
    if (!isOpen) {
      box.replaceChildren();
      return;
    }
    box.allRows = rows;
    if (report.hasImages) box.stopFilling = thumbnails.fill(box, rows);
    else box.append(...Array.from(rows, listed));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-all], [data-show-on-map]");
    if (!button) return;
    if (button.dataset.all !== undefined) toggleAll(button);
    else map.showCluster(Number(button.dataset.showOnMap));
  });

  document.getElementById("sort")?.addEventListener("change", (event) => sort(event.target.value));
  search.onChange(filter);

  // A link may lead to a cluster that the search hides: then clear the search.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.hidden) {
      search.clear();
      target.scrollIntoView();
    }
  });

  return { sort };
})();
