"use strict";
// Which names the map shows at a zoom. A group of clusters shows its own name until there is space for
// the names in it; then its name becomes a quiet heading.
const mapNames = (() => {
  const MAX_LETTERS = 30;
  // Names may take this share of the space of a group before they replace the group's own.
  const MAX_SHARE = 1 / 3;
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const widths = new Map();

  function shown(name) {
    const characters = [...name.replace(/\s+/g, " ")];
    return characters.length > MAX_LETTERS
      ? `${characters.slice(0, MAX_LETTERS - 1).join("")}…`
      : characters.join("");
  }

  function textOf(region) {
    return shown(region.cluster === null ? region.name : report.names[region.cluster]);
  }

  // Larger regions have larger names.
  function styleOf(region, view, largest) {
    const relative = Math.min(1, Math.sqrt(region.size / Math.max(1, largest)));
    const size = Math.round((view.width < 600 ? 11 : 13) + (report.names.length <= 60 ? 3 : 1) * relative);
    if (region.cluster !== null) return { size, font: `600 ${size}px ${FONT}`, spacing: 0 };
    return { size: size + 2, font: `500 ${size + 2}px ${FONT}`, spacing: 0.6 };
  }

  function use(context, { font, spacing }) {
    context.font = font;
    context.letterSpacing = `${spacing}px`;
  }

  function widthOf(context, style, text) {
    const key = `${style.font}|${text}`;
    if (!widths.has(key)) {
      use(context, style);
      widths.set(key, context.measureText(text).width);
    }
    return widths.get(key);
  }

  // The size of a name with the space around it.
  function spaceFor(context, view, region, largest) {
    const style = styleOf(region, view, largest);
    return [widthOf(context, style, textOf(region)) + 12, style.size * 1.5];
  }

  // The part of a region on the screen.
  function boxOf(view, { bounds: [x0, y0, x1, y1] }) {
    return [
      x0 * view.scaleX + view.left, y0 * view.scaleY + view.top,
      x1 * view.scaleX + view.left, y1 * view.scaleY + view.top,
    ];
  }
  const overlaps = (a, b) => a[0] < b[2] && a[2] > b[0] && a[1] < b[3] && a[3] > b[1];
  const areaOf = ([x0, y0, x1, y1]) => (x1 - x0) * (y1 - y0);

  // A group is open if its part, with a line around it, has space for the names of its children.
  // This follows from the zoom alone, so that nothing changes while the view moves.
  function isOpen(context, view, group, largest) {
    if (group.part.share < 0.5) return true;
    const spaces = [group, ...group.children].map((region) => spaceFor(context, view, region, largest));
    const needed = spaces.reduce((sum, [wide, high]) => sum + wide * high, 0);
    const line = spaces[0][1];
    const [x0, y0, x1, y1] = boxOf(view, group.part);
    return needed < MAX_SHARE * areaOf([x0 - line, y0 - line, x1 + line, y1 + line]);
  }

  // A group in several places has no heading, nor one that fills most of the view, nor one that is
  // called like a group in it.
  function hasHeading(view, group) {
    return group.part.share >= 0.5
      && areaOf(boxOf(view, group.part)) < (view.width * view.height) / 3
      && group.children.every((child) => textOf(child) !== textOf(group));
  }

  const clustersIn = (region) => (region.cluster === null ? region.children.flatMap(clustersIn) : [region]);

  // Adds a region with the names in it: the names to show, the headings, and the extra names for which
  // there may be space beside the name of their group.
  function collect(context, view, region, largest, found) {
    if (region.cluster !== null) {
      found.names.push(region);
      return;
    }
    const open = isOpen(context, view, region, largest);
    if (!open) found.names.push(region);
    else if (hasHeading(view, region)) found.headings.push(region);
    for (const child of region.children) {
      // The name of a group says nothing about a child that is elsewhere.
      const isElsewhere = !overlaps(region.part.bounds, child.part.bounds);
      if (open || isElsewhere) collect(context, view, child, largest, found);
      else found.extra.push(...clustersIn(child).filter((one) => textOf(one) !== textOf(region)));
    }
  }

  // All regions that may be named, the most important first. With a search, only the clusters that it
  // found. Those that `isKept` holds for come first.
  function wanted(context, view, search, largest, isKept) {
    const found = { names: [], headings: [], extra: [] };
    const candidates = search
      ? regions.ofClusters().filter((one) => search.clusters.has(one.cluster))
      : regions.tops();
    for (const region of candidates) collect(context, view, region, largest, found);
    return ["names", "headings", "extra"].flatMap((kind) =>
      found[kind]
        .sort((a, b) => isKept(b) - isKept(a) || b.size - a.size)
        .map((region) => ({ region, isHeading: kind === "headings", isExtra: kind === "extra" })),
    );
  }

  return { textOf, styleOf, use, spaceFor, boxOf, overlaps, wanted };
})();
