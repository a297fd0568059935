"use strict";
// The groups at the side: as a tree or a sorted list, with one or several of them marked.
const tree = (() => {
  const list = document.getElementById("tree");
  const places = document.getElementById("places");
  const sort = document.getElementById("sort");
  const actions = document.getElementById("group-actions");
  const mergeButton = document.getElementById("merge-groups");
  const marked = new Set();
  // Groups of groups that were closed, by name.
  const closed = new Set();
  let current = null;
  let lastMarked = null;

  const orders = {
    size: (a, b) => b.size - a.size || a.number - b.number,
    name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }),
    loose: (a, b) => (a.cohesion ?? 1) - (b.cohesion ?? 1),
  };
  const items = () => [...list.querySelectorAll('[role="treeitem"]')].filter((one) => one.offsetParent);
  const numberOf = (item) => (item.dataset.cluster === undefined ? null : Number(item.dataset.cluster));

  // Drawing

  function line(number) {
    const group = report.group(number);
    const dot = element("span", { class: "dot", "data-dot": number });
    const name = element("span", { class: "group-name", dir: "auto" }, group.name);
    if (group.guess && !report.given.has(number)) name.classList.add("is-guess");
    return [dot, name, element("span", { class: "count" }, format.number(group.size))];
  }

  function leaf(number, level) {
    const item = element("li", {
      role: "treeitem", class: "group-item", tabindex: "-1", "data-cluster": number,
      "aria-level": level, "aria-selected": "false",
    });
    item.append(element("div", { class: "group-line" }, ...line(number)));
    return item;
  }

  function branch(node, level) {
    if (node.cluster !== null) return leaf(node.cluster, level);
    const isOpen = !closed.has(node.name);
    const item = element("li", {
      role: "treeitem", class: "group-item is-branch", tabindex: "-1",
      "aria-level": level, "aria-expanded": isOpen, "aria-selected": "false",
    });
    item.node = node;
    const arrow = element("span", { class: "arrow", "aria-hidden": "true" });
    const name = element("span", { class: "group-name", dir: "auto" }, node.name);
    const count = element("span", { class: "count" }, format.number(node.size));
    const below = element("ul", { role: "group" }, ...node.children.map((one) => branch(one, level + 1)));
    below.hidden = !isOpen;
    item.append(element("div", { class: "group-line" }, arrow, name, count), below);
    return item;
  }

  function draw() {
    const focused = document.activeElement?.closest?.("#tree") ? current : null;
    const order = orders[sort.value];
    const made = order
      ? report.groups().sort(order).map((group) => leaf(group.number, 1))
      : report.root.children.map((node) => branch(node, 1));
    list.replaceChildren(...made);
    colours.paintDots(list);
    drawPlaces();
    showState();
    if (focused !== null) itemOf(focused)?.focus();
  }

  function drawPlaces() {
    const entries = [["all", say("place.all"), report.nAll]];
    if (report.nOutliers) entries.push(["outliers", say("place.outliers"), report.nOutliers]);
    if (report.nSetAside) entries.push(["aside", say("aside"), report.nSetAside]);
    places.replaceChildren(...entries.map(([kind, title, size]) => {
      const count = element("span", { class: "count" }, format.number(size));
      const button = element("button", { type: "button", "data-place": kind }, element("span", {}, title), count);
      button.addEventListener("click", () => place.show(kind));
      return element("li", {}, button);
    }));
    const same = element("button", { type: "button", "data-place": "duplicates" }, element("span", {}, say("place.duplicates")));
    same.addEventListener("click", search.duplicates);
    places.append(element("li", {}, same));
  }

  const itemOf = (number) => list.querySelector(`[data-cluster="${number}"]`);

  // Marks the place that is shown and the groups that are chosen, and says what could be done.
  function showState() {
    const { kind, about } = place.now();
    for (const number of marked) if (!report.group(number)) marked.delete(number);
    for (const item of list.querySelectorAll('[role="treeitem"]')) {
      const number = numberOf(item);
      const isShown = kind === "group" ? number === about.number : kind === "groups" && item.node === about.node;
      item.classList.toggle("is-shown", isShown);
      item.setAttribute("aria-selected", number !== null && (marked.has(number) || isShown));
      item.classList.toggle("is-marked", marked.has(number));
    }
    for (const button of places.querySelectorAll("button")) {
      button.setAttribute("aria-current", button.dataset.place === kind);
    }
    const first = (current !== null && itemOf(current)) || list.querySelector('[role="treeitem"]');
    for (const item of list.querySelectorAll('[tabindex="0"]')) item.tabIndex = -1;
    if (first) first.tabIndex = 0;
    actions.hidden = marked.size < 2;
    const size = [...marked].reduce((sum, number) => sum + report.group(number).size, 0);
    mergeButton.textContent = say("group.merge.do", { n: marked.size, things: report.things(size) });
  }

  // Choosing

  function choose(item) {
    const number = numberOf(item);
    current = number;
    marked.clear();
    if (number === null) place.show("groups", { node: item.node });
    else {
      marked.add(number);
      lastMarked = number;
      place.showGroup(number);
    }
    showState();
  }

  function mark(number) {
    if (!marked.delete(number)) marked.add(number);
    lastMarked = current = number;
    showState();
  }

  function markTo(number) {
    const numbers = items().map(numberOf).filter((one) => one !== null);
    const ends = [numbers.indexOf(lastMarked), numbers.indexOf(number)].sort((a, b) => a - b);
    for (const one of numbers.slice(Math.max(0, ends[0]), ends[1] + 1)) marked.add(one);
    current = number;
    showState();
  }

  function toggle(item, isOpen = item.getAttribute("aria-expanded") !== "true") {
    if (isOpen) closed.delete(item.node.name);
    else closed.add(item.node.name);
    item.setAttribute("aria-expanded", isOpen);
    item.querySelector('[role="group"]').hidden = !isOpen;
  }

  async function merge() {
    // The largest group keeps its name and number.
    const groups = [...marked].map(report.group).sort(orders.size).map((group) => group.number);
    const done = await edits.merge(groups);
    if (!done) return;
    marked.clear();
    place.showGroup(groups[0]);
    draw();
  }

  list.addEventListener("click", (event) => {
    const item = event.target.closest('[role="treeitem"]');
    if (!item) return;
    const number = numberOf(item);
    if (event.target.closest(".arrow")) toggle(item);
    else if (number !== null && (event.ctrlKey || event.metaKey)) mark(number);
    else if (number !== null && event.shiftKey) markTo(number);
    else choose(item);
    item.focus();
  });

  function step(item, by) {
    const all = items();
    const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(item) + by))];
    next?.focus();
    return next;
  }

  const keys = {
    ArrowDown: (item) => step(item, 1),
    ArrowUp: (item) => step(item, -1),
    Home: (item) => step(item, -Infinity),
    End: (item) => step(item, Infinity),
    Enter: choose,
    " ": (item) => { if (numberOf(item) === null) toggle(item); else mark(numberOf(item)); },
    ArrowRight: (item) => { if (item.node) toggle(item, true); },
    ArrowLeft: (item) => {
      if (item.node && item.getAttribute("aria-expanded") === "true") toggle(item, false);
      else item.parentElement.closest('[role="treeitem"]')?.focus();
    },
    m: () => { if (marked.size > 1) merge(); },
  };

  list.addEventListener("keydown", (event) => {
    const item = event.target.closest('[role="treeitem"]');
    if (!item || !keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = keys[event.key](item);
    if (event.shiftKey && next && numberOf(next) !== null) markTo(numberOf(next));
  });
  list.addEventListener("focusin", (event) => {
    const item = event.target.closest('[role="treeitem"]');
    for (const other of list.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    item.tabIndex = 0;
    current = numberOf(item) ?? current;
  });

  // Pictures can be dropped on a group.

  const target = (event) => event.target.closest?.("[data-cluster]");
  list.addEventListener("dragover", (event) => {
    const item = target(event);
    if (!item || !pictures.isDragging()) return;
    event.preventDefault();
    item.classList.add("is-target");
  });
  list.addEventListener("dragleave", (event) => target(event)?.classList.remove("is-target"));
  list.addEventListener("drop", (event) => {
    const item = target(event);
    if (!item || !pictures.isDragging()) return;
    event.preventDefault();
    item.classList.remove("is-target");
    edits.move(selection.rows(), numberOf(item));
  });

  mergeButton.addEventListener("click", merge);
  document.getElementById("clear-groups").addEventListener("click", () => {
    marked.clear();
    showState();
  });
  sort.addEventListener("change", draw);
  theme.onChange(() => colours.paintDots(list));
  report.onChange(draw);
  place.onChange(({ kind, about }) => {
    if (kind === "group" && !marked.has(about.number)) {
      marked.clear();
      marked.add(about.number);
      lastMarked = current = about.number;
    }
    if (kind !== "group") marked.clear();
    showState();
  });
  if (report.root.children.every((node) => node.cluster !== null)) {
    sort.querySelector('[value="tree"]').remove();
    sort.value = "size";
  }
  draw();
  return { draw, merge, marked: () => [...marked] };
})();
