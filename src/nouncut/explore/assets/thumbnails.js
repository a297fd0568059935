"use strict";
// Thumbnails of single images, which the server makes on demand.
const thumbnails = (() => {
  const SIDE = 256;
  const source = (row) => (report.hasImages ? `/thumbnails/${SIDE}/${row}` : null);

  // A picture, or the file's name where there is none.
  function image(row) {
    if (!report.hasImages) return nameBox(row);
    const made = element("img", { src: source(row), alt: "", decoding: "async", draggable: "false" });
    made.addEventListener("error", () => made.replaceWith(nameBox(row)), { once: true });
    return made;
  }

  function nameBox(row) {
    const box = element("span", { class: "missing-name", dir: "auto" });
    report.fileNameOf(row).then((name) => { box.textContent = name; });
    return box;
  }

  // A button with a picture, which opens it.
  function tile(row) {
    const made = element("button", { type: "button", class: "tile", "data-row": row }, image(row));
    report.fileNameOf(row).then((name) => made.setAttribute("aria-label", say("tile.open", { name })));
    made.addEventListener("click", () => picture.open([row], 0));
    return made;
  }

  return { source, image, tile };
})();
