"use strict";
// What can be done with the selected pictures; every button says with how many.
(() => {
  const part = (id) => document.getElementById(id);
  const box = part("chosen");

  function draw() {
    const rows = selection.rows();
    box.hidden = !rows.length;
    document.body.classList.toggle("has-chosen", rows.length > 0);
    const number = format.number(rows.length);
    part("chosen-count").textContent = `${format.counted(rows.length, report.things)} selected`;
    part("move-chosen").textContent = `Move ${number} to…`;
    part("new-group").textContent = `New group of ${number}`;
    part("set-aside").textContent = `Set aside ${number}`;
    part("export-chosen").textContent = `Export ${number}…`;
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
