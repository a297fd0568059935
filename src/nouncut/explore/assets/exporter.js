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
      if (more > 0) files.push(element("li", { class: "quiet" }, say("more", { n: more })));
      part("exporter-preview").replaceChildren(
        element("p", {}, ...texts.pieces("export.files", {
          files: say("files", { n: found.nFiles }), place: element("code", {}, found.place),
        })),
        element("ul", {}, ...files),
      );
      button.textContent = say("export.some", { things: report.things(found.nImages) });
      button.disabled = false;
    } catch (problem) {
      if (mine !== asked) return;
      part("exporter-preview").replaceChildren();
      dialogs.problem("exporter-problem", problem.message);
    }
  }

  function open(chosen = null) {
    rows = chosen ? Array.from(chosen) : null;
    const things = report.things(rows ? rows.length : report.nImages);
    part("exporter-title").textContent = say(rows ? "export.some" : "export.all", { things });
    where.value = "";
    where.placeholder = "";
    button.textContent = say("explore.export");
    dialogs.open(dialog);
    look();
  }

  part("exporter-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    button.textContent = say("export.busy");
    try {
      const done = await server.post("/api/export", body(false));
      dialog.close();
      toast.say(say("export.done", { things: report.things(done.nImages), place: done.place }));
    } catch (problem) {
      dialogs.problem("exporter-problem", problem.message);
      button.textContent = say("explore.export");
      button.disabled = false;
    }
  });

  kind.append(...report.exports
    .filter((one) => report.hasImages || !one.needsImages)
    .map((one) => element("option", { value: one.kind }, texts.known(one.about))));
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
