"use strict";
// The page in the reader's language: texts from the catalogues, numbers and dates by the locale.
// Texts are only ever put into the page as text, so that no value becomes HTML.
const texts = (() => {
  const catalogues = JSON.parse(document.getElementById("texts").textContent);
  const languageOf = (locale) => locale.toLowerCase().split("-")[0];
  const hasTexts = (locale) => Object.hasOwn(catalogues, languageOf(locale));
  function isLocale(name) {
    try { return Intl.NumberFormat.supportedLocalesOf(name).length > 0; } catch { return false; }
  }
  const asked = new URLSearchParams(location.search).get("lang");
  const wanted = [...(asked && hasTexts(asked) ? [asked] : []), ...navigator.languages].filter(isLocale);
  const locale = wanted[0] ?? "en";
  const language = languageOf(wanted.find(hasTexts) ?? "en");
  const plurals = new Intl.PluralRules(language);
  const dates = new Intl.DateTimeFormat(locale, { dateStyle: "long", timeStyle: "short" });
  const formats = new Map();

  function number(value, digits = 0) {
    if (!formats.has(digits)) {
      const both = { minimumFractionDigits: digits, maximumFractionDigits: digits };
      formats.set(digits, new Intl.NumberFormat(locale, both));
    }
    return formats.get(digits).format(value);
  }
  // A number as Python wrote it, with as many digits after the point.
  const written = (value) => number(Number(value), value.split(".")[1]?.length);

  function shown(value) {
    if (typeof value === "number") return number(value);
    if (value?.text) return say(value.text, value.values);
    return value?.number ? written(value.number) : value;
  }

  // The pieces of a text, with the values between them; values may be elements.
  function pieces(key, values = {}) {
    const entry = catalogues[language][key] ?? catalogues.en[key];
    const sentence = typeof entry === "string" ? entry : entry[plurals.select(values.n)] ?? entry.other;
    return sentence.split(/\{(\w+)\}/).map((piece, i) => (i % 2 ? shown(values[piece]) : piece));
  }
  const say = (key, values) => pieces(key, values).join("");

  // Sentences that the command line says too come in English; those in the catalogue are known by
  // their pattern.
  const patterns = Object.entries(catalogues.en).filter(([key]) => key.startsWith("runs.")).map(([key, english]) => {
    const escaped = english.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
    const pattern = escaped.replace("{number}", "(?<number>[\\d,]+)").replace(/\{(\w+)\}/g, "(?<$1>.+?)");
    return [key, new RegExp(`^${pattern}$`, "s")];
  });
  function known(english) {
    for (const [key, pattern] of language === "en" ? [] : patterns) {
      const found = pattern.exec(english);
      if (!found) continue;
      const values = Object.entries(found.groups ?? {}).map(([name, value]) => [name, inner(name, value)]);
      return say(key, Object.fromEntries(values));
    }
    return english;
  }
  // Some values are sentences or numbers themselves; the names of groups are neither.
  function inner(name, value) {
    if (!["edit", "images", "number", "value"].includes(name)) return value;
    const plain = value.replaceAll(",", "");
    return /^\d+(\.\d+)?$/.test(plain) ? written(plain) : known(value);
  }

  function sayAgain(node) {
    const values = JSON.parse(node.dataset.values ?? "{}");
    for (const part of node.querySelectorAll(":scope > [data-part]")) values[part.dataset.part] = part;
    node.replaceChildren(...pieces(node.dataset.text, values));
  }

  // Says what Python wrote in English.
  function apply() {
    document.documentElement.lang = language;
    for (const node of document.querySelectorAll("[data-text]")) sayAgain(node);
    for (const name of ["aria-label", "placeholder", "title"]) {
      for (const node of document.querySelectorAll(`[data-text-${name}]`)) {
        const values = JSON.parse(node.getAttribute(`data-values-${name}`) ?? "{}");
        node.setAttribute(name, say(node.getAttribute(`data-text-${name}`), values));
      }
    }
    for (const node of document.querySelectorAll("[data-known]")) {
      const english = node.textContent;
      node.textContent = known(english);
      if (node.textContent !== english) node.removeAttribute("lang");
    }
    for (const node of document.querySelectorAll("data, [data-number]")) {
      const value = node.value ?? node.dataset.number;
      node.textContent = node.matches(".percent") ? format.percent(Number(value)) : written(value);
    }
    for (const node of document.querySelectorAll("time")) node.textContent = format.date(node.dateTime);
    document.title = `${document.querySelector("h1").textContent} · nouncut`;
  }

  return { apply, locale, number, pieces, say, known, date: (time) => dates.format(new Date(time)) };
})();
const { say } = texts;

// Numbers and dates as the page shows them.
const format = {
  number: (value) => texts.number(value),
  date: texts.date,
  // As in said.py: 0 % and 100 % only for exactly none and all.
  percent(share) {
    if (share === null) return say("unknown");
    const exact = (number) => say("percent", { number });
    if (share > 0 && share < 0.005) return say("percent.under", { percent: exact(1) });
    if (share >= 0.995 && share < 1) return say("percent.over", { percent: exact(99) });
    return exact(Math.round(100 * share));
  },
  // Lower case, without accents.
  searchable: (words) => words.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase(),
};
texts.apply();
