"use strict";
// One image, large, with what is known of it; the arrows lead through the others beside it.
const lightbox = (() => {
  const dialog = document.getElementById("lightbox");
  const part = (name) => dialog.querySelector(`.lightbox-${name}`);
  let rows = [];
  let place = 0;

  function fact(label, ...value) {
    return element("div", {}, element("dt", {}, label), element("dd", { dir: "auto" }, ...value));
  }

  function clusterLink(number, certainty) {
    const link = element(
      "a",
      { href: `#cluster-${number}`, "data-cluster-name": number },
      report.names[number],
    );
    link.addEventListener("click", () => dialog.close());
    return [link, certainty === null ? "" : ` ${words.percent(certainty)}`];
  }

  function show() {
    const row = rows[place];
    const address = thumbnails.source(row);
    const image = part("image");
    image.hidden = !address;
    image.alt = report.fileName(row);
    if (address) image.src = address;
    else image.removeAttribute("src");
    part("missing").hidden = Boolean(address);
    part("missing").textContent = report.hasPictures
      ? `No picture: ${thumbnails.problem(row)}`
      : "This run was made from features, without pictures.";
    part("name").textContent = report.fileName(row);
    part("count").textContent = `${words.number(place + 1)} of ${words.number(rows.length)}`;
    const facts = [fact("Cluster", ...clusterLink(report.cluster[row], report.confidence(row)))];
    const second = report.second(row);
    if (second !== null && report.secondConfidence(row) >= 0.01) {
      facts.push(fact("Or", ...clusterLink(second, report.secondConfidence(row))));
    }
    if (report.isOutlier(row)) facts.push(fact("Outlier", "fits nowhere well"));
    if (report.hasPictures) facts.push(fact("File", report.fullPath(row)));
    part("facts").replaceChildren(...facts);
    const link = report.link(row);
    for (const original of dialog.querySelectorAll(".lightbox-original")) {
      if (link) original.href = link;
      else original.removeAttribute("href");
    }
    part("button").hidden = !link;
    part("previous").disabled = place === 0;
    part("next").disabled = place === rows.length - 1;
  }

  function open(list, index) {
    if (!list.length) return;
    [rows, place] = [list, index];
    show();
    if (!dialog.open) dialog.showModal();
  }

  function step(by) {
    const next = Math.min(rows.length - 1, Math.max(0, place + by));
    if (next === place) return;
    place = next;
    show();
  }

  part("previous").addEventListener("click", () => step(-1));
  part("next").addEventListener("click", () => step(1));
  part("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    step(by);
  });

  // Tiles are links to the files, so they serve without scripts, and in a new tab.
  document.addEventListener("click", (event) => {
    const tile = event.target.closest?.(".tile[data-row]");
    if (!tile || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const strip = tile.closest(".grid") ?? tile.parentElement;
    const tiles = [...strip.querySelectorAll(".tile[data-row]")];
    // A strip that is filled bit by bit knows all its rows.
    const list = strip.allRows ?? tiles.map((one) => Number(one.dataset.row));
    open(list, Math.max(0, list.indexOf(Number(tile.dataset.row))));
  });

  return { open };
})();
