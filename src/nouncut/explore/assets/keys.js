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
    ["/", "search"],
    ["1, 2, 3", "go to the groups, the map, the pictures"],
    ["Arrows", "move; with Shift, select"],
    ["Space", "select a picture, or mark a group"],
    ["Enter", "open a picture, or show a group"],
    ["Ctrl+A", "select all pictures here"],
    ["M", "move the selected pictures, or merge the marked groups"],
    ["G", "make a new group of the selected pictures"],
    ["X", "set the selected pictures aside"],
    ["R", "rename the group"],
    ["S", "split the group"],
    ["A", "are these the same?"],
    ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
    ["H", "history"],
    ["E", "export"],
    ["Esc", "clear the selection or the search"],
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
