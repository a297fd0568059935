"use strict";
// The theme: the reader's choice, otherwise the system's.
const theme = (() => {
  const KEY = "nouncut-theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  root.classList.add("js");

  // Some browsers store nothing for pages opened from a disk.
  function remembered() {
    try { return localStorage.getItem(KEY); } catch { return null; }
  }
  function remember(choice) {
    try { localStorage.setItem(KEY, choice); } catch { /* forgotten when the page is closed */ }
  }

  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const notify = () => { for (const listener of listeners) listener(); };

  function toggle() {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    notify();
  }

  const choice = remembered();
  if (choice === "dark" || choice === "light") root.dataset.theme = choice;
  system.addEventListener("change", notify);
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", toggle);
  });
  return { isDark, onChange: (listener) => listeners.push(listener) };
})();
