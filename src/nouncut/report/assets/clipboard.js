"use strict";
// Copying text, and saying that it was done.
const clipboard = (() => {
  // For browsers that give pages on a disk no clipboard.
  function copyOldWay(text) {
    const area = element("textarea", { class: "out-of-sight", "aria-hidden": "true" });
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
      return copyOldWay(text);
    }
  }

  async function copyFrom(button, text) {
    const label = button.dataset.label ??= button.textContent;
    button.textContent = (await copy(text)) ? "Copied" : "Not allowed";
    setTimeout(() => { button.textContent = label; }, 1600);
  }

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", () => {
      copyFrom(button, button.parentElement.querySelector("code").textContent);
    });
  }
  return { copyFrom };
})();
