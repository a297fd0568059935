"use strict";
// Dialogs: opening, closing by button, by Escape and by a click beside them.
const dialogs = (() => {
  function open(dialog) {
    toast.hide();
    if (!dialog.open) dialog.showModal();
  }

  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    });
    dialog.addEventListener("close", () => document.body.append(document.getElementById("toast")));
  }

  const show = (id, message) => {
    const line = document.getElementById(id);
    line.hidden = !message;
    line.textContent = message ?? "";
  };

  return { open, problem: show };
})();
