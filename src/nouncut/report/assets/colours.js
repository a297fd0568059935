"use strict";
// One colour per cluster: equally light, with distant hues for neighbouring numbers.
const colours = (() => {
  const HUES = [262, 45, 150, 5, 305, 95, 205, 340, 125, 235, 70, 180];
  const GOLDEN_ANGLE = 137.508;

  // OKLCH, in which equal lightness looks equally light, to bytes of red, green and blue.
  function rgb(lightness, chroma, hue) {
    const a = chroma * Math.cos((hue * Math.PI) / 180);
    const b = chroma * Math.sin((hue * Math.PI) / 180);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const linear = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
    return linear.map((value) => {
      const clipped = Math.min(1, Math.max(0, value));
      const level = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
      return Math.round(255 * level);
    });
  }

  function of(cluster) {
    const round = Math.floor(cluster / HUES.length);
    const hue = round ? cluster * GOLDEN_ANGLE : HUES[cluster];
    const step = 0.07 * ((round % 3) - (round ? 1 : 0));
    const [lightness, chroma] = theme.isDark() ? [0.76, 0.13] : [0.62, 0.16];
    // Images that are set aside are grey.
    if (cluster === report.setAside) return rgb(lightness, 0, 0);
    return rgb(lightness + step, chroma, hue);
  }

  function paintDots(box = document) {
    for (const dot of box.querySelectorAll("[data-dot]")) {
      dot.style.backgroundColor = `rgb(${of(Number(dot.dataset.dot)).join(" ")})`;
    }
  }

  theme.onChange(() => paintDots());
  paintDots();
  return { of, paintDots };
})();
