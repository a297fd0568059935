"use strict";
// One image, enlarged, with its details; the arrow keys go through the others of its grid.
const lightbox = (() => {
  const dialog = document.getElementById("lightbox");
  const part = (name) => dialog.querySelector(`.lightbox-${name}`);
  let rows = [];
  let index = 0;

  function fact(label, ...value) {
    return element("div", {}, element("dt", {}, label), element("dd", { dir: "auto" }, ...value));
  }

  function clusterLink(number, confidence) {
    if (number === report.setAside) return [say("aside.none")];
    const link = element(
      "a",
      { href: `#cluster-${number}`, "data-cluster-name": number },
      report.names[number],
    );
    link.addEventListener("click", () => dialog.close());
    return [link, confidence === null ? "" : ` ${format.percent(confidence)}`];
  }

  function show() {
    const row = rows[index];
    const address = thumbnails.source(row);
    const image = part("image");
    image.hidden = !address;
    image.alt = report.fileName(row);
    if (address) image.src = address;
    else image.removeAttribute("src");
    part("missing").hidden = Boolean(address);
    part("missing").textContent = report.hasImages
      ? say("lightbox.missing", { why: thumbnails.problem(row) })
      : say("features_only");
    part("name").textContent = report.fileName(row);
    part("count").textContent = say("of", { number: index + 1, all: rows.length });
    const facts = [fact(say("cluster"), ...clusterLink(report.cluster[row], report.confidence(row)))];
    const second = report.second(row);
    if (second !== null && report.secondConfidence(row) >= 0.01) {
      facts.push(fact(say("second"), ...clusterLink(second, report.secondConfidence(row))));
    }
    if (report.isOutlier(row)) facts.push(fact(say("outlier"), say("outliers.why")));
    if (report.hasImages) facts.push(fact(say("file"), report.fullPath(row)));
    part("facts").replaceChildren(...facts);
    part("reasons").replaceChildren(...reasons.show(row));
    const link = report.link(row);
    for (const original of dialog.querySelectorAll(".lightbox-original")) {
      if (link) original.href = link;
      else original.removeAttribute("href");
    }
    part("button").hidden = !link;
    part("previous").disabled = index === 0;
    part("next").disabled = index === rows.length - 1;
  }

  function open(list, first) {
    if (!list.length) return;
    [rows, index] = [list, first];
    show();
    if (!dialog.open) dialog.showModal();
    // The picture that was clicked may be gone, and with it the focus.
    else part("inside").focus();
  }

  function step(by) {
    const next = Math.min(rows.length - 1, Math.max(0, index + by));
    if (next === index) return;
    index = next;
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

  // Tiles are links to the files, which work without scripts and in a new tab.
  document.addEventListener("click", (event) => {
    const tile = event.target.closest?.(".tile[data-row]");
    if (!tile || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const grid = tile.closest(".grid") ?? tile.parentElement;
    const tiles = [...grid.querySelectorAll(".tile[data-row]")];
    // A grid that is filled while it scrolls knows all its rows.
    const list = grid.allRows ?? tiles.map((one) => Number(one.dataset.row));
    open(list, Math.max(0, list.indexOf(Number(tile.dataset.row))));
  });

  return { open };
})();
