"use strict";
// Asks for a group: by typing a part of its name, with the arrow keys, or by a click.
const chooser = (() => {
  const dialog = document.getElementById("chooser");
  const input = document.getElementById("chooser-input");
  const list = document.getElementById("chooser-list");
  let done = () => {};
  let options = [];
  let current = 0;

  // What a typed text could mean; a new name makes a new group where that makes sense.
  function find(text, except, canBeNew) {
    const wanted = format.searchable(text.trim());
    const names = report.groups().filter((group) => !except.includes(group.number));
    const found = names
      .map((group) => ({ group, at: format.searchable(group.name).indexOf(wanted) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => (wanted ? a.at - b.at : 0) || b.group.size - a.group.size)
      .map(({ group }) => ({ value: group.number, text: group.name, size: group.size }));
    const isKnown = report.groups().some((group) => format.searchable(group.name) === wanted);
    if (canBeNew && wanted && !isKnown) found.push({ value: text.trim(), text: say("group.new.named", { name: text.trim() }) });
    return found;
  }

  function draw(except, canBeNew) {
    options = find(input.value, except, canBeNew);
    current = Math.min(current, Math.max(0, options.length - 1));
    list.replaceChildren(...options.map((option, index) => {
      const item = element("li", { role: "option", id: `option-${index}`, "aria-selected": index === current });
      if (typeof option.value === "number") item.append(element("span", { class: "dot", "data-dot": option.value }));
      item.append(element("span", { class: "group-name", dir: "auto" }, option.text));
      if (option.size) item.append(element("span", { class: "count" }, format.number(option.size)));
      item.addEventListener("click", () => choose(index));
      return item;
    }));
    colours.paintDots(list);
    if (options.length) input.setAttribute("aria-activedescendant", `option-${current}`);
    else input.removeAttribute("aria-activedescendant");
    list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  function choose(index) {
    if (!options[index]) return;
    dialog.close();
    done(options[index].value);
  }

  function ask(title, except, canBeNew, then) {
    document.getElementById("chooser-title").textContent = title;
    input.value = "";
    current = 0;
    done = then;
    input.oninput = () => {
      current = 0;
      draw(except, canBeNew);
    };
    input.onkeydown = (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) {
        event.preventDefault();
        current = Math.max(0, Math.min(options.length - 1, current + by));
        draw(except, canBeNew);
      } else if (event.key === "Enter") {
        event.preventDefault();
        choose(current);
      }
    };
    draw(except, canBeNew);
    dialogs.open(dialog);
    input.focus();
  }

  function move(rows) {
    const here = new Set(Array.from(rows, (row) => report.cluster[row]));
    const except = here.size === 1 ? [...here] : [];
    ask(say("move.which", { things: report.things(rows.length) }), except, true, (to) => edits.move(rows, to));
  }

  function mergeWith(number) {
    const { name, size } = report.group(number);
    ask(say("group.merge.which", { name, things: report.things(size) }), [number], false, async (other) => {
      // The larger group keeps its name and number.
      const groups = [number, other].sort((a, b) => report.group(b).size - report.group(a).size);
      if (await edits.merge(groups)) place.showGroup(groups[0]);
    });
  }

  return { move, mergeWith };
})();
