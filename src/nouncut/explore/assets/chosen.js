"use strict";
// What can be done with the selected pictures; every button says with how many.
(() => {
  const part = (id) => document.getElementById(id);
  const box = part("chosen");

  function draw() {
    const rows = selection.rows();
    box.hidden = !rows.length;
    document.body.classList.toggle("has-chosen", rows.length > 0);
    const n = rows.length;
    part("chosen-count").textContent = say("selected", { things: report.things(n) });
    part("move-chosen").textContent = say("chosen.move", { n });
    part("new-group").textContent = say("chosen.new", { n });
    part("set-aside").textContent = say("chosen.aside", { n });
    part("export-chosen").textContent = say("chosen.export", { n });
    part("like-chosen").hidden = rows.length !== 1;
  }

  part("move-chosen").addEventListener("click", () => chooser.move(selection.rows()));
  part("new-group").addEventListener("click", () => namer.newGroup(selection.rows()));
  part("set-aside").addEventListener("click", () => edits.setAside(selection.rows()));
  part("like-chosen").addEventListener("click", () => search.like(selection.rows()[0]));
  part("export-chosen").addEventListener("click", () => exporter.open(selection.rows()));
  part("clear-chosen").addEventListener("click", selection.clear);
  selection.onChange(draw);
})();
