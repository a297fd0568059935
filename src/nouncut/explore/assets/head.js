"use strict";
// The title of the place, what is known about it, and what can be done with it.
const head = (() => {
  const title = document.getElementById("place-title");
  const about = document.getElementById("place-about");
  const actions = document.getElementById("place-actions");
  const foundGroups = document.getElementById("found-groups");

  const button = (text, action, attributes = {}) => {
    const made = element("button", { type: "button", ...attributes }, text);
    made.addEventListener("click", action);
    return made;
  };

  // Of a large run, the page has some of the pictures of a group.
  const shown = (n, all) => (n < all && report.nImages < report.nAll
    ? say("things.some", { n, things: report.things(all) })
    : report.things(n));

  function facts({ kind, about: asked, rows }) {
    const group = kind === "group" ? report.group(asked.number) : null;
    const parts = [shown(rows.length, group?.size ?? (kind === "all" ? report.nAll : rows.length))];
    if (!group) return parts.join(" · ");
    if (group.words?.length) parts.push(say("place.words", { words: group.words.slice(0, 4).join(", ") }));
    if (group.guess && !report.given.has(group.number)) parts.push(say("place.guess"));
    return parts.join(" · ");
  }

  function groupActions(number) {
    const things = report.things(report.group(number).size);
    const made = [
      button(say("rename"), () => namer.rename(number), { title: say("group.rename.title") }),
      ...(report.canSplit ? [button(say("group.split", { things }), () => splitter.open(number), { title: say("group.split.title") })] : []),
      button(say("group.merge"), () => chooser.mergeWith(number), { title: say("group.merge.title") }),
    ];
    if (report.x.length) made.push(button(say("on_map"), () => layout.showOnMap(() => map.showCluster(number))));
    return made;
  }

  // All but the first of every set, to set them aside or to export them.
  function duplicateActions(sets) {
    const copies = sets.flatMap((set) => set.slice(1));
    const text = say("place.duplicates.select", { n: copies.length });
    return copies.length ? [button(text, () => selection.set(copies))] : [];
  }

  function actionsOf(now) {
    if (now.kind === "group" && report.group(now.about.number)) return groupActions(now.about.number);
    return now.kind === "duplicates" ? duplicateActions(now.sets) : [];
  }

  function chip(number) {
    const group = report.group(number);
    const dot = element("span", { class: "dot", "data-dot": number });
    const name = element("span", { dir: "auto" }, group.name);
    const made = button("", () => place.showGroup(number), { class: "chip" });
    made.append(dot, name, element("span", { class: "count" }, format.number(group.size)));
    return made;
  }

  function draw(now) {
    title.textContent = now.title;
    about.textContent = facts(now);
    actions.replaceChildren(...actionsOf(now));
    const groups = (now.groups ?? []).filter(report.group);
    foundGroups.hidden = !groups.length;
    foundGroups.replaceChildren(...groups.map(chip));
    colours.paintDots(foundGroups);
  }

  place.onChange(draw);
  return { draw };
})();
