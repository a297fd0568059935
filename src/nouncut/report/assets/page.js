"use strict";
// What every script of a page uses: numbers and text as people read them, and making elements.

// Map positions are whole numbers from 0 to this.
const MAX_POSITION = 65535;

// Numbers and text as the page shows them.
const format = {
  number: (value) => value.toLocaleString("en"),
  counted: (value, [one, many]) => `${value.toLocaleString("en")} ${value === 1 ? one : many}`,
  // As in render.py: 0 % and 100 % only for exactly none and all.
  percent(value) {
    if (value === null) return "unknown";
    if (value > 0 && value < 0.005) return "under 1\u00a0%";
    if (value >= 0.995 && value < 1) return "over 99\u00a0%";
    return `${Math.round(100 * value)}\u00a0%`;
  },
  // Lower case, without accents.
  searchable: (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase(),
};

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
