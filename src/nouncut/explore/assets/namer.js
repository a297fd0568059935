"use strict";
// Asks for a name: of a group, or of a new one.
const namer = (() => {
  const dialog = document.getElementById("namer");
  const input = document.getElementById("namer-input");
  const button = document.getElementById("namer-do");
  let done = () => {};

  function ask(title, verb, name, then) {
    document.getElementById("namer-title").textContent = title;
    button.textContent = verb;
    dialogs.problem("namer-problem", null);
    input.value = name;
    done = then;
    dialogs.open(dialog);
    input.focus();
    input.select();
  }

  document.getElementById("namer-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = input.value.trim();
    const other = report.groups().find((group) => format.searchable(group.name) === format.searchable(name));
    if (!name) return;
    const problem = done.check?.(other);
    if (problem) {
      dialogs.problem("namer-problem", problem);
      return;
    }
    dialog.close();
    done(name);
  });

  function rename(number) {
    const { name, size } = report.group(number);
    const then = (next) => { if (next !== name) edits.rename(number, next); };
    then.check = (other) => other && other.number !== number
      && say("group.rename.taken");
    ask(say("group.rename.which", { name }), say("group.rename.do", { things: report.things(size) }), name, then);
  }

  function newGroup(rows) {
    const things = report.things(rows.length);
    const then = async (name) => {
      if (!(await edits.move(rows, name))) return;
      const made = report.groups().find((group) => group.name === name);
      if (made) place.showGroup(made.number);
    };
    then.check = (other) => other && say("group.new.taken");
    ask(say("group.new", { things }), say("group.new.do", { things }), "", then);
  }

  return { rename, newGroup };
})();
