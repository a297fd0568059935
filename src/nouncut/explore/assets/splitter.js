"use strict";
// Splits a group, after showing its parts.
const splitter = (() => {
  const SHOWN = 8;
  const dialog = document.getElementById("splitter");
  const parts = document.getElementById("splitter-parts");
  const preview = document.getElementById("splitter-preview");
  const button = document.getElementById("splitter-do");
  let number = 0;
  let asked = 0;

  const wanted = () => (parts.value === "auto" ? "auto" : Number(parts.value));

  function column({ name, rows }, index) {
    // The first part keeps the name of the group.
    const heading = index
      ? element("input", { type: "text", value: name, "aria-label": say("group.split.part", { number: index + 1 }), maxlength: 200 })
      : element("h3", { dir: "auto" }, name);
    const pictures = rows.slice(0, SHOWN).map((row) => element("span", { class: "tile" }, thumbnails.image(row)));
    return element(
      "div",
      { class: "part" },
      heading,
      element("p", { class: "quiet" }, report.things(rows.length)),
      element("div", { class: "part-pictures" }, ...pictures),
    );
  }

  async function look() {
    const mine = ++asked;
    button.disabled = true;
    dialogs.problem("splitter-problem", say("group.split.looking"));
    preview.replaceChildren();
    try {
      const found = await edits.preview("split", { group: number, parts: wanted() });
      if (mine !== asked) return;
      dialogs.problem("splitter-problem", found.problem);
      if (found.problem) return;
      preview.replaceChildren(...found.parts.map(column));
      button.textContent = say("group.split.into", { n: found.parts.length });
      button.disabled = false;
    } catch (problem) {
      if (mine === asked) dialogs.problem("splitter-problem", problem.message);
    }
  }

  function open(group) {
    number = group;
    const { name, size } = report.group(number);
    const title = say("group.split.which", { name, things: report.things(size) });
    document.getElementById("splitter-title").textContent = title;
    parts.value = "auto";
    button.textContent = say("group.split.do");
    dialogs.open(dialog);
    look();
  }

  async function split() {
    const names = [null, ...[...preview.querySelectorAll("input")].map((input) => input.value)];
    button.disabled = true;
    if (await edits.split(number, wanted(), names)) dialog.close();
    button.disabled = false;
  }

  parts.addEventListener("change", look);
  button.addEventListener("click", split);
  return { open };
})();
