"use strict";
// Without this script, all links work; with it, so do arrow keys, Escape and swipes.
{
  const open = () => document.querySelector(".view:target");
  const follow = (name) => open()?.querySelector(name).click();
  const KEYS = { ArrowLeft: ".previous", ArrowRight: ".next", Escape: ".close" };
  const ENOUGH = 50;
  let start = null;
  document.addEventListener("keydown", (event) => {
    if (open() && event.key in KEYS && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      follow(KEYS[event.key]);
    }
  });
  document.addEventListener("touchstart", (event) => {
    start = event.touches.length === 1 ? event.touches[0] : null;
  }, { passive: true });
  document.addEventListener("touchend", (event) => {
    if (!start || !open()) return;
    const end = event.changedTouches[0];
    const [right, down] = [end.clientX - start.clientX, end.clientY - start.clientY];
    if (Math.abs(right) > ENOUGH && Math.abs(right) > 2 * Math.abs(down)) follow(right < 0 ? ".next" : ".previous");
  }, { passive: true });
  // Steps replace the address, so that the way back leads out of the album, not through it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".step, .close, .large");
    if (!link) return;
    event.preventDefault();
    location.replace(link.getAttribute("href"));
    open()?.querySelector(".next").focus({ preventScroll: true });
  });
}
