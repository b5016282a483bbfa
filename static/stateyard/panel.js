// The room of graph and panel, and the edge between them: dragged, or moved with the arrow keys. Its place is kept in this browser.
"use strict";
(() => {
  const KEPT = "stateyard-panel";
  const STEP = 24;
  const LINE = 26; // pixels
  const LEAST_ROOM = 380; // pixels: four states above each other
  const edge = () => document.querySelector("[data-panel-edge]");

  function setWidth(wanted) {
    const separator = edge();
    const least = Number(separator.getAttribute("aria-valuemin"));
    const most = Math.max(least, Math.min(960, document.querySelector("[data-workflow]").clientWidth * 0.7));
    const width = Math.round(Math.min(most, Math.max(least, wanted)));
    document.querySelector("[data-workflow]").style.setProperty("--panel", `${width}px`);
    separator.setAttribute("aria-valuenow", String(width));
    return width;
  }

  function keep(width) {
    try {
      localStorage.setItem(KEPT, String(width));
    } catch {
      // a browser that keeps nothing shows the usual width next time
    }
  }

  document.addEventListener("pointerdown", (event) => {
    const separator = event.target.closest?.("[data-panel-edge]");
    if (!separator || event.button !== 0) return;
    event.preventDefault();
    separator.setPointerCapture(event.pointerId);
    separator.dataset.dragged = "";
    const right = document.getElementById("panel").getBoundingClientRect().right;
    const move = (next) => setWidth(right - next.clientX);
    const stop = () => {
      delete separator.dataset.dragged;
      separator.removeEventListener("pointermove", move);
      keep(separator.getAttribute("aria-valuenow"));
    };
    separator.addEventListener("pointermove", move);
    separator.addEventListener("lostpointercapture", stop, { once: true });
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.("[data-panel-edge]")) return;
    const by = { ArrowLeft: STEP, ArrowRight: -STEP, Home: 2000, End: -2000 }[event.key];
    if (!by) return;
    event.preventDefault();
    keep(setWidth(Number(event.target.getAttribute("aria-valuenow")) + by));
  });
  // The graph ends where the window does, so that what is chosen in it can be seen without scrolling.
  function fitToWindow() {
    const workflow = document.querySelector("[data-workflow]");
    const room = innerHeight - workflow.getBoundingClientRect().top - scrollY - 4;
    workflow.style.setProperty("--room", `${Math.max(LEAST_ROOM, Math.round(room))}px`);
  }

  // A long cause may not push the graph down: the banner shows its beginning, and the rest at a press.
  const showAll = () => document.querySelector("[data-show-all]");
  const bounded = (button) => document.getElementById(button.dataset.showAll);

  function offerRest() {
    const button = showAll();
    if (!button || button.getAttribute("aria-expanded") === "true") return;
    const text = bounded(button);
    text.classList.remove("nearly-whole");
    const rest = text.scrollHeight - text.clientHeight;
    text.classList.toggle("nearly-whole", rest > 2 && rest <= LINE); // a press for one line is one too many
    button.hidden = rest <= LINE;
  }

  function showRest(button, whole) {
    button.hidden = false;
    button.setAttribute("aria-expanded", String(whole));
    button.textContent = whole ? "Show less" : "Show all";
    bounded(button).classList.toggle("whole", whole);
    bounded(button).scrollTop = 0;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-show-all]");
    if (button) showRest(button, button.getAttribute("aria-expanded") !== "true");
  });
  document.addEventListener("toggle", (event) => {
    const button = showAll();
    if (button && event.target.open && bounded(button).contains(event.target)) showRest(button, true);
  }, true);
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target?.id === "outcome") offerRest();
  });

  document.addEventListener("DOMContentLoaded", () => {
    offerRest();
    addEventListener("resize", offerRest);
    if (!edge()) return;
    fitToWindow();
    addEventListener("resize", fitToWindow);
    new ResizeObserver(fitToWindow).observe(document.body); // a banner can appear above the graph
    const kept = Number(localStorage.getItem(KEPT));
    if (kept) setWidth(kept);
  });
})();
