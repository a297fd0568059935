"use strict";
// New names of clusters, kept in the page until they are saved to a file.
const rename = (() => {
  const bar = document.getElementById("names-bar");
  const original = [...report.names];
  const changed = new Set();
  const MAX_LETTERS = 80;

  function update() {
    const count = changed.size;
    bar.hidden = count === 0;
    document.body.classList.toggle("has-names-bar", count > 0);
    document.getElementById("names-count").textContent =
      say("names.changed", { n: count });
  }

  function set(number, name) {
    report.names[number] = name;
    if (name === original[number]) changed.delete(number);
    else changed.add(number);
    for (const node of document.querySelectorAll(`[data-cluster-name="${number}"]`)) {
      node.textContent = name;
    }
    for (const node of document.querySelectorAll(`[data-guessed="${number}"]`)) {
      node.classList.toggle("guessed", !changed.has(number));
    }
    search.namesChanged();
    map.redraw();
    update();
  }

  function edit(number) {
    const heading = document.getElementById(`cluster-${number}-name`);
    if (heading.querySelector("input")) return;
    const shown = heading.querySelector("[data-cluster-name]");
    const box = element("input", {
      class: "name-box",
      maxlength: MAX_LETTERS,
      "aria-label": say("cluster.new_name", { name: report.names[number] }),
      autocomplete: "off",
      spellcheck: "true",
    });
    box.value = report.names[number];
    let isDone = false;
    function finish(isKept) {
      if (isDone) return;
      isDone = true;
      const name = box.value.split(/\s+/).filter(Boolean).join(" ");
      box.replaceWith(shown);
      if (isKept && name && name !== report.names[number]) set(number, name);
    }
    box.addEventListener("blur", () => finish(true));
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.stopPropagation();
      finish(event.key === "Enter");
      document.querySelector(`[data-rename="${number}"]`).focus();
    });
    shown.replaceWith(box);
    box.select();
    box.focus();
  }

  function save() {
    const numbers = [...new Set([...report.renamed, ...changed])].sort((a, b) => a - b);
    const names = Object.fromEntries(numbers.map((number) => [number, report.names[number]]));
    const content = JSON.stringify({ format: 1, run: report.run, names }, null, 1);
    const address = URL.createObjectURL(new Blob([`${content}\n`], { type: "application/json" }));
    element("a", { href: address, download: "names.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    document.getElementById("names-hint").hidden = false;
    document.getElementById("names-save").textContent = say("names.again");
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("[data-rename], .cluster h3 [data-cluster-name]");
    if (target) edit(Number(target.dataset.rename ?? target.dataset.clusterName));
  });
  document.getElementById("names-save").addEventListener("click", save);
  document.getElementById("names-undo").addEventListener("click", () => {
    for (const number of [...changed]) set(number, original[number]);
  });
  return { set };
})();
