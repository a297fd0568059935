"use strict";
// What every script of a page uses.

// Map positions are whole numbers from 0 to this.
const MAX_POSITION = 65535;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
