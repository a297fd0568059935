"use strict";
// Joins the map with the rest, and shows everything.
map.onOpen((row) => pictures.showRow(row));
report.onChange(map.refresh);
place.show("all");
