"use strict";
// Copies text, and says so on the button.
const clipboard = (() => {
  // Some browsers deny the clipboard to pages opened from a disk.
  function copySelection(text) {
    const area = element("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copySelection(text);
    }
  }

  async function copyFrom(button, text) {
    const label = button.dataset.label ??= button.textContent;
    button.textContent = say((await copy(text)) ? "copied" : "copied.not");
    setTimeout(() => { button.textContent = label; }, 1600);
  }

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", () => {
      copyFrom(button, button.parentElement.querySelector("code").textContent);
    });
  }
  return { copyFrom };
})();
