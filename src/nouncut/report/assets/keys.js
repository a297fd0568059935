"use strict";
// Keys that work everywhere: slash starts a search, Escape cancels.
addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, textarea, select");
  const hasDialog = document.querySelector("dialog[open]");
  if (hasDialog || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    search.input.focus();
    search.input.select();
  }
  if (event.key === "Escape" && !isTyping && !map.cancel()) search.clear();
});
