// The timeline: a part of it is chosen by dragging over the bars. The fields do the same.
"use strict";
(() => {
  const LEAST = 6; // pixels: less is a press
  const WIDTH = 1000; // units of the axis

  // Where time bends: idle time is folded.
  function knotsOf(table) {
    return table.querySelector(".axis").dataset.knots.split(" ").map((knot) => knot.split(":").map(Number));
  }

  function timeAt(knots, x) {
    for (let place = 1; place < knots.length; place += 1) {
      const [[left, since], [right, until]] = [knots[place - 1], knots[place]];
      if (x <= right && right > left) return since + ((x - left) / (right - left)) * (until - since);
    }
    return knots[knots.length - 1][1];
  }

  function showRange(mark, table, bar, from, to) {
    const room = table.getBoundingClientRect();
    mark.style.left = `${bar.left - room.left + Math.min(from, to)}px`;
    mark.style.width = `${Math.abs(to - from)}px`;
  }

  function zoom(table, from, to) {
    const form = document.querySelector("form[data-timeline-zoom]");
    const knots = knotsOf(table);
    const [since, until] = [from, to].map((share) => timeAt(knots, share * WIDTH) / 1000);
    form.elements.from.value = since.toFixed(3);
    form.elements.to.value = Math.max(until, since + 0.001).toFixed(3);
    form.requestSubmit();
  }

  document.addEventListener("pointerdown", (event) => {
    const place = event.target.closest("[data-timeline-rows] svg.bar, [data-timeline-rows] svg.axis");
    if (!place || event.button !== 0 || event.pointerType === "touch") return;
    event.preventDefault();
    const table = place.closest("table");
    const bar = place.getBoundingClientRect();
    const start = event.clientX - bar.left;
    const mark = document.createElement("div");
    mark.className = "timeline-range";
    table.append(mark);
    const at = (next) => Math.min(bar.width, Math.max(0, next.clientX - bar.left));
    const move = (next) => showRange(mark, table, bar, start, at(next));
    const abort = new AbortController();
    const stop = (next) => {
      abort.abort();
      mark.remove();
      const end = at(next);
      if (next.type !== "pointerup" || Math.abs(end - start) < LEAST) return;
      zoom(table, Math.min(start, end) / bar.width, Math.max(start, end) / bar.width);
    };
    document.addEventListener("pointermove", move, { signal: abort.signal });
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, stop, { signal: abort.signal });
  });
})();
