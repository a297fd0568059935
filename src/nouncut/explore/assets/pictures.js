"use strict";
// The pictures of the place. Only the lines in view are elements of the page, so a hundred thousand
// pictures are as quick as a hundred.
const pictures = (() => {
  const box = document.getElementById("tiles");
  const empty = document.getElementById("empty");
  const size = document.getElementById("tile-size");
  const space = element("div", { class: "tiles-space", role: "presentation" });
  const GAP = 6;
  const LINES_BEYOND = 2;
  const tiles = new Map();
  let rows = [];
  // The number of the set of duplicates that a row is in.
  let setOf = new Map();
  let columns = 1;
  let side = 1;
  // The picture that the keyboard is at, by its place in `rows`, and where a range starts.
  let current = 0;
  let anchor = 0;
  let isDragging = false;
  box.append(space);
  // Three beside each other on a telephone.
  if (innerWidth < 768) size.value = 96;

  // Drawing

  function measure() {
    const wide = box.clientWidth - 2 * GAP;
    columns = Math.max(2, Math.floor(wide / (Number(size.value) + GAP)));
    side = Math.floor((wide - (columns - 1) * GAP) / columns);
    const lines = Math.ceil(rows.length / columns);
    space.style.height = `${Math.max(0, lines * (side + GAP) + GAP)}px`;
  }

  function makeTile(index) {
    const row = rows[index];
    const tile = element(
      "div",
      { role: "option", class: "tile", id: `tile-${row}`, "data-row": row, draggable: "true" },
      thumbnails.image(row),
      element("span", { class: "check", "aria-hidden": "true" }),
    );
    tile.setAttribute("aria-posinset", index + 1);
    tile.setAttribute("aria-label", say("tile", { name: report.names[report.cluster[row]], number: row + 1 }));
    return tile;
  }

  // Names of files are asked for when somebody looks at them.
  async function sayName(tile) {
    if (tile.title) return;
    tile.title = await report.pathOf(Number(tile.dataset.row));
    const { set } = tile.dataset;
    tile.setAttribute("aria-label", set ? say("tile.set", { name: tile.title, number: set }) : tile.title);
  }

  function remove(tile) {
    // A picture that is still on its way is not needed any more.
    tile.querySelector("img")?.removeAttribute("src");
    tile.remove();
  }

  function put(tile, index) {
    const [column, line] = [index % columns, Math.floor(index / columns)];
    tile.style.width = tile.style.height = `${side}px`;
    tile.style.transform = `translate(${GAP + column * (side + GAP)}px, ${GAP + line * (side + GAP)}px)`;
  }

  function draw() {
    const line = side + GAP;
    const first = Math.max(0, Math.floor(box.scrollTop / line) - LINES_BEYOND) * columns;
    const last = (Math.ceil((box.scrollTop + box.clientHeight) / line) + LINES_BEYOND) * columns;
    const wanted = new Set();
    for (let index = first; index < Math.min(rows.length, last); index++) wanted.add(index);
    for (const [index, tile] of tiles) {
      if (!wanted.has(index) || Number(tile.dataset.row) !== rows[index]) {
        remove(tile);
        tiles.delete(index);
      }
    }
    for (const index of wanted) {
      if (!tiles.has(index)) {
        tiles.set(index, makeTile(index));
        space.append(tiles.get(index));
      }
      put(tiles.get(index), index);
    }
    showState();
  }

  function showState() {
    for (const [index, tile] of tiles) {
      tile.setAttribute("aria-selected", selection.has(rows[index]));
      tile.setAttribute("aria-setsize", rows.length);
      tile.classList.toggle("is-current", index === current);
      const set = setOf.get(rows[index]);
      if (set) tile.dataset.set = set;
      else tile.removeAttribute("data-set");
      tile.classList.toggle("is-even", set % 2 === 0);
    }
    box.classList.toggle("has-chosen", selection.rows().length > 0);
    const tile = tiles.get(current);
    if (tile) box.setAttribute("aria-activedescendant", tile.id);
    else box.removeAttribute("aria-activedescendant");
    if (tile && document.activeElement === box) sayName(tile);
  }

  function fill(now, isNew) {
    rows = now.rows;
    setOf = new Map((now.sets ?? []).flatMap((set, number) => set.map((row) => [row, number + 1])));
    if (isNew) {
      [current, anchor] = [0, 0];
      box.scrollTop = 0;
    }
    current = Math.max(0, Math.min(current, rows.length - 1));
    empty.hidden = rows.length > 0;
    empty.textContent = now.empty || say("place.empty");
    box.hidden = rows.length === 0;
    measure();
    draw();
  }

  // Choosing

  function reach(index) {
    current = Math.max(0, Math.min(rows.length - 1, index));
    const top = Math.floor(current / columns) * (side + GAP);
    if (top < box.scrollTop) box.scrollTop = top;
    const bottom = top + side + 2 * GAP;
    if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    draw();
    map.ring(rows[current] ?? -1);
  }

  function chooseTo(index) {
    const [first, last] = [anchor, index].sort((a, b) => a - b);
    selection.set(Array.from(rows.slice(first, last + 1)), { isMore: true });
  }

  // Shows a picture that was pointed at elsewhere, such as on the map.
  function showRow(row) {
    let index = rows.indexOf(row);
    if (index < 0) {
      place.showGroup(report.cluster[row]);
      index = rows.indexOf(row);
    }
    anchor = index;
    reach(index);
    tiles.get(index)?.classList.add("is-found");
    setTimeout(() => tiles.get(index)?.classList.remove("is-found"), 1500);
  }

  const indexOf = (tile) => Number(tile.getAttribute("aria-posinset")) - 1;

  box.addEventListener("click", (event) => {
    const tile = event.target.closest(".tile");
    if (!tile) return;
    const index = indexOf(tile);
    if (event.shiftKey) chooseTo(index);
    else if (event.ctrlKey || event.metaKey || event.target.closest(".check")) selection.toggle(rows[index]);
    else if (event.pointerType === "touch" && !selection.rows().length) picture.open(rows, index);
    else if (event.pointerType === "touch") selection.toggle(rows[index]);
    else selection.set([rows[index]]);
    if (!event.shiftKey) anchor = index;
    reach(index);
  });
  box.addEventListener("dblclick", (event) => {
    const tile = event.target.closest(".tile");
    if (tile && !event.target.closest(".check")) picture.open(rows, indexOf(tile));
  });
  box.addEventListener("pointerover", (event) => {
    const tile = event.target.closest(".tile");
    if (tile) sayName(tile);
    map.ring(tile ? Number(tile.dataset.row) : -1);
  });
  box.addEventListener("pointerleave", () => map.ring(-1));

  const page = () => Math.max(1, Math.floor(box.clientHeight / (side + GAP))) * columns;
  const steps = {
    ArrowLeft: () => -1,
    ArrowRight: () => 1,
    ArrowUp: () => -columns,
    ArrowDown: () => columns,
    PageUp: () => -page(),
    PageDown: page,
    Home: () => -rows.length,
    End: () => rows.length,
  };

  box.addEventListener("keydown", (event) => {
    if (steps[event.key]) {
      event.preventDefault();
      reach(current + steps[event.key]());
      if (event.shiftKey) chooseTo(current);
      else anchor = current;
    } else if (event.key === " ") {
      event.preventDefault();
      anchor = current;
      selection.toggle(rows[current]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      picture.open(rows, current);
    } else if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      selection.set(rows);
    }
  });

  // Dragging: the picture under the pointer joins the selection, or is one of its own.

  box.addEventListener("dragstart", (event) => {
    const row = Number(event.target.closest(".tile").dataset.row);
    if (!selection.has(row)) selection.set([row]);
    isDragging = true;
    const label = element("div", { class: "drag-label" }, report.things(selection.rows().length));
    document.body.append(label);
    event.dataTransfer.setDragImage(label, -12, -12);
    event.dataTransfer.setData("text/plain", label.textContent);
    event.dataTransfer.effectAllowed = "move";
    setTimeout(() => label.remove());
  });
  box.addEventListener("dragend", () => { isDragging = false; });

  box.addEventListener("scroll", draw, { passive: true });
  size.addEventListener("input", () => {
    measure();
    draw();
  });
  new ResizeObserver(() => {
    measure();
    draw();
  }).observe(box);
  selection.onChange(showState);
  place.onChange(fill);
  return { showRow, isDragging: () => isDragging, focus: () => box.focus() };
})();
