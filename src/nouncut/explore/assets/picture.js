"use strict";
// One picture, large, with what is known about it and why it is where it is.
const picture = (() => {
  const part = (id) => document.getElementById(`picture-${id}`);
  const dialog = document.getElementById("picture");
  let rows = [];
  let index = 0;

  const row = () => rows[index];

  function fact(label, ...value) {
    return element("div", {}, element("dt", {}, label), element("dd", { dir: "auto" }, ...value));
  }

  function groupLink(number, confidence) {
    if (number === report.setAside) return [say("aside.none")];
    const link = element("button", { type: "button", class: "link" }, report.names[number]);
    link.addEventListener("click", () => {
      dialog.close();
      place.showGroup(number);
    });
    return [link, confidence === null ? "" : ` ${format.percent(confidence)}`];
  }

  function facts(one, path) {
    const found = [fact(say("explore.group"), ...groupLink(report.cluster[one], report.confidence(one)))];
    if (report.isByHand(one)) found.push(fact(say("picture.moved"), say("picture.moved.by_hand")));
    const second = report.second(one);
    if (second !== null && report.secondConfidence(one) >= 0.01) {
      found.push(fact(say("second"), ...groupLink(second, report.secondConfidence(one))));
    }
    if (report.isOutlier(one)) found.push(fact(say("outlier"), say("picture.outlier")));
    found.push(fact(say(report.hasImages ? "file" : "picture.row"), path));
    return found;
  }

  async function explain(one) {
    part("reasons").replaceChildren();
    const found = await server.get("/api/explain", { row: one });
    if (one === row()) part("reasons").replaceChildren(...reasons.show(one, found));
  }

  async function show() {
    const one = row();
    part("count").textContent = say("of", { number: index + 1, all: rows.length });
    part("previous").disabled = index === 0;
    part("next").disabled = index === rows.length - 1;
    part("map").hidden = !report.x.length;
    part("image").hidden = !report.hasImages;
    part("missing").hidden = report.hasImages;
    part("missing").textContent = say("features_only");
    if (report.hasImages) {
      // The thumbnail is there at once, the picture follows.
      part("image").src = thumbnails.source(one);
      const large = new Image();
      large.addEventListener("load", () => { if (one === row()) part("image").src = large.src; });
      large.src = `/images/${one}`;
    }
    explain(one).catch(() => {});
    const path = await report.pathOf(one);
    if (one !== row()) return;
    part("name").textContent = report.fileName(one);
    part("image").alt = report.fileName(one);
    part("facts").replaceChildren(...facts(one, path));
  }

  function open(list, first) {
    if (!list.length) return;
    [rows, index] = [list, Math.max(0, first)];
    dialogs.open(dialog);
    show();
  }

  function step(by) {
    const next = Math.min(rows.length - 1, Math.max(0, index + by));
    if (next === index) return;
    index = next;
    show();
  }

  part("image").addEventListener("error", async () => {
    part("image").hidden = true;
    part("missing").hidden = false;
    part("missing").textContent = say("picture.gone");
  });
  part("previous").addEventListener("click", () => step(-1));
  part("next").addEventListener("click", () => step(1));
  part("move").addEventListener("click", () => chooser.move([row()]));
  part("aside").addEventListener("click", () => edits.setAside([row()]));
  part("like").addEventListener("click", () => {
    dialog.close();
    search.like(row());
  });
  part("map").addEventListener("click", () => {
    dialog.close();
    layout.showOnMap(() => map.showRow(row()));
  });
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.target.matches("input")) return;
    event.preventDefault();
    step(by);
  });
  report.onChange(() => { if (dialog.open) show(); });
  return { open };
})();
// The map opens pictures by the report's name for it.
const lightbox = picture;
