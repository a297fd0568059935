"use strict";
// A short message at the bottom, with a way back after an edit.
const toast = (() => {
  const SECONDS = 8;
  const box = document.getElementById("toast");
  const text = document.getElementById("toast-text");
  const undo = document.getElementById("toast-undo");
  let timer = 0;

  function say(message, { canUndo = false } = {}) {
    text.textContent = message;
    undo.hidden = !canUndo;
    box.hidden = false;
    // A dialog covers everything outside it.
    (document.querySelector("dialog[open]") ?? document.body).append(box);
    clearTimeout(timer);
    timer = setTimeout(hide, 1000 * SECONDS);
  }

  function hide() {
    box.hidden = true;
    document.body.append(box);
  }

  undo.addEventListener("click", () => {
    hide();
    edits.undo();
  });
  return { say, hide };
})();
