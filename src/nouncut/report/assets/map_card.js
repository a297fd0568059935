"use strict";
// The card beside a dot of the map: its thumbnail, cluster and file name.
const mapCard = (() => {
  const card = document.getElementById("map-card");

  // Shows the card of a row; -1 hides it.
  function show(row) {
    card.hidden = row < 0;
    if (row < 0) return;
    const address = thumbnails.source(row);
    const image = card.querySelector("img");
    image.hidden = !address;
    if (address) image.src = address;
    card.querySelector(".map-card-name").textContent = report.fileName(row);
    card.querySelector(".map-card-cluster").textContent = report.names[report.cluster[row]];
    card.querySelector(".dot").style.backgroundColor =
      `rgb(${colours.of(report.cluster[row]).join(" ")})`;
  }

  function place(x, y) {
    const { width, height } = camera.view();
    const [wide, high] = [card.offsetWidth, card.offsetHeight];
    const left = x + 18 + wide < width ? x + 18 : x - 18 - wide;
    const top = Math.min(height - high - 8, Math.max(8, y - high / 2));
    card.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
  }

  return { show, place };
})();
