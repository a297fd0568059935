"use strict";
// Thumbnails of all images: on the page, in a block of data, or in a folder beside the page.
const thumbnails = (() => {
  const blocks = document.querySelectorAll(".thumbnail-block");
  const parsed = new Map();
  const shown = new Map();
  for (const image of document.querySelectorAll("img[data-row]")) {
    shown.set(Number(image.dataset.row), image);
  }

  function entry(row) {
    const size = report.thumbnailsPerBlock;
    const number = Math.floor(row / size);
    if (!blocks[number]) return null;
    if (!parsed.has(number)) parsed.set(number, JSON.parse(blocks[number].textContent));
    return parsed.get(number)[row % size];
  }

  // The source for an <img>, or null.
  function source(row) {
    if (shown.has(row)) return shown.get(row).src;
    const found = entry(row);
    if (typeof found === "number") return found === row ? null : source(found);
    if (typeof found !== "string") return null;
    return report.thumbnailFolder
      ? `${report.thumbnailFolder}/${found}.webp`
      : `data:image/webp;base64,${found}`;
  }

  function problem(row) {
    const found = entry(row);
    if (Array.isArray(found)) return texts.known(found[0]);
    if (typeof found === "number" && found !== row) return problem(found);
    return document.querySelector(`.missing[data-row="${row}"] .missing-why`)?.textContent ?? "";
  }

  function tile(row) {
    const name = report.fileName(row);
    const address = source(row);
    const box = element("a", {
      class: address ? "tile" : "tile missing",
      href: report.link(row),
      target: "_blank",
      rel: "noopener",
      title: report.path(row),
      "data-row": row,
    });
    if (address) {
      box.append(element("img", { src: address, alt: name, loading: "lazy", decoding: "async" }));
    } else {
      box.append(
        element("span", { class: "missing-name", dir: "auto" }, name),
        element("span", { class: "missing-why" }, problem(row)),
      );
    }
    return box;
  }

  // Fills a box with tiles: the next ones when the last comes into view.
  function fill(box, rows) {
    const AT_ONCE = 120;
    let next = 0;
    const watcher = new IntersectionObserver((entries) => {
      if (entries.some((one) => one.isIntersecting)) more();
    }, { rootMargin: "600px" });
    function more() {
      watcher.disconnect();
      const part = rows.slice(next, next + AT_ONCE);
      next += part.length;
      box.append(...Array.from(part, tile));
      if (next < rows.length) watcher.observe(box.lastElementChild);
    }
    box.replaceChildren();
    more();
    return () => watcher.disconnect();
  }

  return { source, problem, tile, fill };
})();
