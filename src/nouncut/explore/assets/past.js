"use strict";
// What was done, and undoing and redoing it.
const past = (() => {
  const part = (id) => document.getElementById(id);
  const dialog = part("past");
  const when = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

  function entry({ text, nImages, time, isUndone }) {
    const about = [format.counted(nImages, report.things)];
    if (time) about.push(when.format(new Date(time)));
    if (isUndone) about.push("undone");
    return element(
      "li",
      { class: isUndone ? "is-undone" : null },
      element("p", { dir: "auto" }, edits.sentence(text)),
      element("p", { class: "quiet" }, about.join(" · ")),
    );
  }

  function draw() {
    for (const [id, text, verb] of [["undo", report.undo, "Undo"], ["redo", report.redo, "Redo"]]) {
      part(id).disabled = part(`past-${id}`).disabled = !text;
      part(id).title = text ? `${verb}: ${edits.sentence(text)}` : `Nothing to ${id}`;
    }
    const list = report.history.map(entry).reverse();
    part("past-list").replaceChildren(...(list.length ? list : [element("li", {}, "Nothing was changed yet.")]));
  }

  for (const prefix of ["", "past-"]) {
    part(`${prefix}undo`).addEventListener("click", edits.undo);
    part(`${prefix}redo`).addEventListener("click", edits.redo);
  }
  const open = () => dialogs.open(dialog);
  part("show-history").addEventListener("click", open);
  report.onChange(draw);
  draw();
  return { open };
})();
