"use strict";
// Edits of the groups. Each is sent to the server, and all data is read again.
const edits = (() => {
  let isBusy = false;

  // The log names groups with number and size, as the command line does; people see the names.
  const plain = (text) => text.replace(/ \(\d+; [\d,]+ images?\)/g, "");
  function sentence(text) {
    const said = texts.known(plain(text));
    return `${said[0].toUpperCase()}${said.slice(1)}.`;
  }

  // Returns what was done; null if it could not be done, which was said.
  async function edit(verb, about = {}) {
    if (isBusy) return null;
    isBusy = true;
    document.body.classList.add("is-busy");
    try {
      const done = await server.post("/api/edit", { verb, version: report.version, ...about });
      await report.reload();
      toast.say(sentence(done.text), { canUndo: verb !== "undo" });
      return done;
    } catch (problem) {
      if (problem.status === 409) await report.reload();
      toast.say(problem.message);
      return null;
    } finally {
      isBusy = false;
      document.body.classList.remove("is-busy");
    }
  }

  const preview = (verb, about) =>
    server.post("/api/edit", { verb, version: report.version, preview: true, ...about });

  async function move(rows, to) {
    const done = await edit("move", { rows: [...rows], to });
    if (done) selection.clear();
    return done;
  }

  async function setAside(rows) {
    const done = await edit("set aside", { rows: [...rows] });
    if (done) selection.clear();
    return done;
  }

  return {
    sentence,
    preview,
    move,
    setAside,
    merge: (groups) => edit("merge", { groups }),
    split: (group, parts, names) => edit("split", { group, parts, names }),
    rename: (group, name) => edit("rename", { group, name }),
    keepApart: (groups) => edit("apart", { groups }),
    undo: () => edit("undo"),
    redo: () => edit("redo"),
  };
})();
