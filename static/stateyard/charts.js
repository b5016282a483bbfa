// Charts: the value under the pointer, beside its time. Bars without a script keep their tables.
"use strict";
(() => {
  const pad = (value) => String(value).padStart(2, "0");

  function timeText(milliseconds) {
    const local = document.documentElement.dataset.clock === "local";
    const time = new Date(milliseconds);
    const part = (name) => time[`${local ? "get" : "getUTC"}${name}`]();
    const day = `${part("FullYear")}-${pad(part("Month") + 1)}-${pad(part("Date"))}`;
    return `${day} ${pad(part("Hours"))}:${pad(part("Minutes"))}`;
  }

  function readoutOf(area) {
    const known = area.querySelector(".readout");
    if (known) return known;
    const made = document.createElement("output");
    made.className = "readout";
    area.append(made);
    return made;
  }

  function show(bar) {
    const area = bar.closest(".plot-area");
    const readout = readoutOf(area);
    const time = document.createElement("time");
    time.textContent = timeText(Number(bar.dataset.start));
    readout.replaceChildren(time, " ", bar.dataset.readout);
    const box = area.getBoundingClientRect();
    const at = bar.getBoundingClientRect();
    const left = at.left + at.width / 2 - box.left;
    readout.style.left = `${Math.min(Math.max(left - readout.offsetWidth / 2, 0), box.width - readout.offsetWidth)}px`;
    readout.hidden = false;
  }

  function hide(area) {
    const readout = area?.querySelector(".readout");
    if (readout) readout.hidden = true;
  }

  const barOf = (event) => event.target.closest?.(".plot .bar, .plot a")?.closest(".bar")
    ?? event.target.closest?.(".plot a")?.querySelector(".bar");

  for (const name of ["pointerover", "focusin"]) {
    document.addEventListener(name, (event) => {
      const bar = barOf(event);
      if (bar) show(bar);
      else hide(event.target.closest?.(".plot-area"));
    });
  }
  document.addEventListener("pointerout", (event) => {
    const area = event.target.closest?.(".plot-area");
    if (area && !area.contains(event.relatedTarget)) hide(area);
  });
  document.addEventListener("focusout", (event) => hide(event.target.closest?.(".plot-area")));
})();
