"use strict";
// The parts of the page: the height of the map, and one part at a time on a small screen.
const layout = (() => {
  const KEY = "nouncut-map-height";
  const main = document.querySelector(".explorer");
  const divider = document.getElementById("divider");
  const buttons = [...document.querySelectorAll("[data-show]")];

  function setHeight(percent) {
    const share = Math.round(Math.min(85, Math.max(0, percent)));
    main.style.setProperty("--map-height", `${share}%`);
    divider.setAttribute("aria-valuenow", share);
    try { localStorage.setItem(KEY, share); } catch { /* forgotten when the page is closed */ }
  }

  function show(part) {
    document.body.dataset.view = part;
    for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.show === part);
  }

  divider.addEventListener("pointerdown", (event) => {
    divider.setPointerCapture(event.pointerId);
    divider.onpointermove = (moved) => {
      const box = main.getBoundingClientRect();
      setHeight((100 * (moved.clientY - box.top)) / box.height);
    };
    divider.onpointerup = () => { divider.onpointermove = null; };
  });
  divider.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -5, ArrowDown: 5 }[event.key];
    if (!by) return;
    event.preventDefault();
    setHeight(Number(divider.getAttribute("aria-valuenow")) + by);
  });
  for (const button of buttons) button.addEventListener("click", () => show(button.dataset.show));
  // On a small screen, choosing a group or searching leads to the pictures.
  place.onChange((_, isNew) => { if (isNew) show("pictures"); });
  try {
    const known = Number(localStorage.getItem(KEY));
    if (known) setHeight(known);
  } catch { /* nothing is remembered */ }
  show("pictures");
  document.body.classList.toggle("has-no-map", !report.x.length);
  // On a small screen, the map has a size only once it is shown.
  function showOnMap(action) {
    show("map");
    requestAnimationFrame(action);
  }

  return { show, showOnMap };
})();
