"use strict";
// Asks about pairs of groups that may be one: yes merges them, no is remembered, later asks again.
const asker = (() => {
  const SHOWN = 6;
  const WAIT = 1500;
  const part = (id) => document.getElementById(id);
  const dialog = part("asker");
  let waiting = [];
  let isAnswering = false;
  let timer = 0;

  async function look() {
    if (!report.hasGraph) return;
    const { suggestions } = await server.get("/api/suggestions");
    const keyOf = ({ groups }) => groups.join("-");
    const later = waiting.filter((one) => one.isLater).map(keyOf);
    waiting = suggestions.map((one) => ({ ...one, isLater: later.includes(keyOf(one)) }));
    waiting.sort((a, b) => a.isLater - b.isLater);
    part("ask").hidden = !waiting.length;
    part("ask-count").textContent = format.number(waiting.length);
  }

  function column(number) {
    const { name, size, exemplars } = report.group(number);
    const pictures = exemplars.slice(0, SHOWN).map((row) => element("span", { class: "tile" }, thumbnails.image(row)));
    return element(
      "div",
      { class: "part" },
      element("h3", { dir: "auto" }, element("span", { class: "dot", "data-dot": number }), name),
      element("p", { class: "quiet" }, report.things(size)),
      element("div", { class: "part-pictures" }, ...pictures),
    );
  }

  // Reasons are joined by semicolons.
  function reasonOf(text) {
    const parts = text.slice(0, -1).split("; ").map((one) => texts.known(`${one[0].toLowerCase()}${one.slice(1)}`));
    const joined = parts.join("; ");
    return `${joined[0].toUpperCase()}${joined.slice(1)}.`;
  }

  function draw() {
    const [first] = waiting;
    if (!first) {
      dialog.close();
      toast.say(say("asker.none"));
      return;
    }
    const { groups, reason } = first;
    const size = Math.min(...groups.map((number) => report.group(number).size));
    part("asker-count").textContent = say("of", { number: 1, all: waiting.length });
    part("asker-reason").textContent = reasonOf(reason);
    part("asker-groups").replaceChildren(...groups.map(column));
    colours.paintDots(part("asker-groups"));
    part("asker-yes").replaceChildren(
      `${say("asker.yes", { things: report.things(size) })} `,
      element("kbd", { "aria-hidden": "true" }, "Y"),
    );
  }

  async function answer(send) {
    if (isAnswering || !waiting.length) return;
    isAnswering = true;
    await send(waiting[0]);
    isAnswering = false;
    draw();
  }

  const answers = {
    y: () => answer(async ({ groups }) => {
      const bySize = [...groups].sort((a, b) => report.group(b).size - report.group(a).size);
      if (await edits.merge(bySize)) await look();
    }),
    n: () => answer(async ({ groups }) => {
      if (await edits.keepApart(groups)) await look();
    }),
    l: () => answer(async (one) => {
      one.isLater = true;
      waiting.push(waiting.shift());
    }),
  };

  async function open() {
    await look();
    if (!waiting.length) return;
    dialogs.open(dialog);
    draw();
    part("asker-yes").focus();
  }

  part("asker-yes").addEventListener("click", answers.y);
  part("asker-no").addEventListener("click", answers.n);
  part("asker-later").addEventListener("click", answers.l);
  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    answers[event.key.toLowerCase()]?.();
  });
  part("ask").addEventListener("click", open);
  // Not after each of several quick edits.
  report.onChange(() => {
    clearTimeout(timer);
    timer = setTimeout(() => { if (!dialog.open) look(); }, WAIT);
  });
  look();
  return { open };
})();
