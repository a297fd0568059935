"use strict";
// What was done, and undoing and redoing it.
const past = (() => {
  const part = (id) => document.getElementById(id);
  const dialog = part("past");

  function entry({ text, nImages, time, isUndone }) {
    const about = [report.things(nImages)];
    if (time) about.push(format.date(time));
    if (isUndone) about.push(say("history.undone"));
    return element(
      "li",
      { class: isUndone ? "is-undone" : null },
      element("p", { dir: "auto" }, edits.sentence(text)),
      element("p", { class: "quiet" }, about.join(" · ")),
    );
  }

  function draw() {
    for (const [id, text] of [["undo", report.undo], ["redo", report.redo]]) {
      part(id).disabled = part(`past-${id}`).disabled = !text;
      part(id).title = text
        ? say(`history.${id}`, { text: edits.sentence(text) })
        : say(`history.${id}.none`);
    }
    const list = report.history.map(entry).reverse();
    part("past-list").replaceChildren(...(list.length ? list : [element("li", {}, say("history.none"))]));
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
