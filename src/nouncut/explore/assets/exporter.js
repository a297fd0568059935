"use strict";
// Exports the selection, a group or everything, after showing what will be written.
const exporter = (() => {
  const part = (id) => document.getElementById(id);
  const dialog = part("exporter");
  const [kind, where, button] = [part("exporter-kind"), part("exporter-place"), part("exporter-do")];
  let rows = null;
  let asked = 0;
  let timer = 0;

  const body = (preview) => ({
    kind: kind.value, to: where.value.trim() || null, rows, groups: null, preview, options: {},
  });

  async function look() {
    const mine = ++asked;
    button.disabled = true;
    try {
      const found = await server.post("/api/export", body(true));
      if (mine !== asked) return;
      dialogs.problem("exporter-problem", found.problem);
      if (found.problem) {
        part("exporter-preview").replaceChildren();
        return;
      }
      where.placeholder = found.place;
      const files = found.files.slice(0, 8).map((file) => element("li", { dir: "auto" }, file));
      const more = found.nFiles - files.length;
      if (more > 0) files.push(element("li", { class: "quiet" }, `and ${format.number(more)} more`));
      part("exporter-preview").replaceChildren(
        element("p", {}, `Will write ${format.counted(found.nFiles, ["file", "files"])} to `, element("code", {}, found.place)),
        element("ul", {}, ...files),
      );
      button.textContent = `Export ${format.counted(found.nImages, report.things)}`;
      button.disabled = false;
    } catch (problem) {
      if (mine !== asked) return;
      part("exporter-preview").replaceChildren();
      dialogs.problem("exporter-problem", problem.message);
    }
  }

  function open(chosen = null) {
    rows = chosen ? Array.from(chosen) : null;
    const number = format.counted(rows ? rows.length : report.nImages, report.things);
    part("exporter-title").textContent = `Export ${rows ? number : `all ${number}`}`;
    where.value = "";
    where.placeholder = "";
    button.textContent = "Export";
    dialogs.open(dialog);
    look();
  }

  part("exporter-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    button.textContent = "Exporting…";
    try {
      const done = await server.post("/api/export", body(false));
      dialog.close();
      toast.say(`Exported ${format.counted(done.nImages, report.things)} to ${done.place}`);
    } catch (problem) {
      dialogs.problem("exporter-problem", problem.message);
      button.textContent = "Export";
      button.disabled = false;
    }
  });

  kind.append(...report.exports
    .filter((one) => report.hasImages || !one.needsImages)
    .map((one) => element("option", { value: one.kind }, one.about)));
  kind.addEventListener("change", look);
  where.addEventListener("input", () => {
    clearTimeout(timer);
    // An answer that is under way is about the place before.
    asked += 1;
    button.disabled = true;
    timer = setTimeout(look, 250);
  });
  part("export-all").addEventListener("click", () => open());
  return { open };
})();
