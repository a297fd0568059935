"use strict";
// Keys that work everywhere, and the list of all keys.
(() => {
  const part = (id) => document.getElementById(id);
  const group = () => (place.now().kind === "group" ? place.now().about.number : null);
  const withGroup = (action) => () => { if (group() !== null) action(group()); };
  const withChosen = (action) => () => { if (selection.rows().length) action(selection.rows()); };
  const merge = () => {
    if (tree.marked().length > 1) tree.merge();
    else if (group() !== null) chooser.mergeWith(group());
  };
  const keys = {
    "/": () => { search.input.focus(); search.input.select(); },
    "?": () => dialogs.open(part("help")),
    r: withGroup((number) => namer.rename(number)),
    s: withGroup((number) => { if (report.canSplit) splitter.open(number); }),
    m: () => { if (selection.rows().length) chooser.move(selection.rows()); else merge(); },
    g: withChosen((rows) => namer.newGroup(rows)),
    x: withChosen((rows) => edits.setAside(rows)),
    e: () => exporter.open(selection.rows().length ? selection.rows() : null),
    h: () => past.open(),
    a: () => asker.open(),
    1: () => part("tree").querySelector('[tabindex="0"]')?.focus(),
    2: () => part("map-canvas").focus(),
    3: () => pictures.focus(),
  };
  const about = [
    ["/", say("keys.search")],
    ["1, 2, 3", say("keys.go")],
    [say("keys.arrows"), say("keys.walk")],
    [say("keys.space"), say("keys.mark")],
    [say("keys.enter"), say("keys.open")],
    [say("keys.ctrl_a"), say("keys.all")],
    ["M", say("keys.move")],
    ["G", say("keys.new")],
    ["X", say("keys.aside")],
    ["R", say("keys.rename")],
    ["S", say("keys.split")],
    ["A", say("keys.same")],
    [say("keys.ctrl_z"), say("keys.undo")],
    ["H", say("keys.history")],
    ["E", say("keys.export")],
    [say("keys.escape"), say("keys.clear")],
  ];

  function isTyping(event) {
    return event.target.matches?.('input:not([type="range"]), textarea, select');
  }

  addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") || isTyping(event)) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
      event.preventDefault();
      if (event.shiftKey) edits.redo();
      else edits.undo();
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && !map.cancel()) search.clear();
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  part("key-list").append(...about.map(([key, text]) =>
    element("div", {}, element("dt", {}, element("kbd", {}, key)), element("dd", {}, text))));
  part("show-keys").addEventListener("click", keys["?"]);
})();
