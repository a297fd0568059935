"use strict";
// Keys that work everywhere: slash to search, Escape to step back.
addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, textarea, select");
  const isBehind = document.querySelector("dialog[open]");
  if (isBehind || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    search.input.focus();
    search.input.select();
  }
  if (event.key === "Escape" && !isTyping && !map.cancel()) search.clear();
});
