// The time machine: a slider over the events. The server computes the state at an event.
"use strict";
(() => {
  const PLAY_MS = 350;
  const STEPS = 120; // playing a long history takes about this many steps
  let playing = 0;
  let waiting = 0;

  const form = () => document.querySelector("[data-time]");
  const slider = () => document.getElementById("at");
  const active = () => new URLSearchParams(location.search).has("at");

  async function show(number) {
    const range = slider();
    if (!range) return;
    const at = Math.min(Number(range.max), Math.max(1, number));
    range.value = at;
    const address = new URL(location.href);
    address.searchParams.set("at", at);
    address.searchParams.delete("event");
    address.hash = "";
    history.replaceState(history.state, "", address);
    form().querySelector("[data-leave-past]").hidden = false;
    document.dispatchEvent(new CustomEvent("past", { detail: at }));
    const inTime = address.searchParams.get("view") === "timeline";
    const rows = document.getElementById(inTime ? "timeline-rows" : "step-table")?.dataset.rows ?? "";
    const source = `${address.pathname}_at${address.search}&seen_rows=${rows}`;
    await htmx.ajax("GET", source, { source: "#moment", target: "#moment", swap: "none" }).catch(() => {});
    const words = document.getElementById("moment");
    range.setAttribute("aria-valuetext", words.textContent.replace(/\s+/g, " ").trim());
    for (const row of document.querySelectorAll("tr.current-event")) row.classList.remove("current-event");
    document.getElementById(`e${at}`)?.classList.add("current-event");
  }

  function showSoon(number) {
    clearTimeout(waiting);
    waiting = setTimeout(() => show(number), 60);
  }

  function stop() {
    clearTimeout(playing);
    playing = 0;
    updatePlayButton(false);
  }

  function updatePlayButton(on) {
    const button = form()?.querySelector("[data-play]");
    button?.setAttribute("aria-pressed", String(on));
    button?.setAttribute("aria-label", on ? "Stop playing" : "Play from here");
  }

  async function play() {
    const last = Number(slider().max);
    const by = Math.max(1, Math.round(last / STEPS));
    const at = Number(slider().value);
    await show(playing === -1 && at >= last ? 1 : at + by);
    if (!playing) return;
    if (Number(slider().value) >= last) stop();
    else playing = setTimeout(play, PLAY_MS);
  }

  function toggle() {
    if (playing) return stop();
    playing = -1;
    updatePlayButton(true);
    play();
  }

  const stepBy = (by) => {
    stop();
    show(Number(slider().value) + by);
  };

  document.addEventListener("input", (event) => {
    if (event.target.id !== "at") return;
    stop();
    showSoon(Number(event.target.value));
  });
  // Back to now with what the reader has chosen meanwhile: the link was written before that.
  function keepChoices(link) {
    const address = new URL(location.href);
    for (const key of ["at", "page", "event"]) address.searchParams.delete(key);
    address.hash = "workflow";
    link.href = address;
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-play]")) toggle();
    const leave = event.target.closest("[data-leave-past]");
    if (leave) keepChoices(leave);
    const link = event.target.closest("[data-event-step]");
    if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    stepBy(Number(link.dataset.eventStep));
  });
  document.addEventListener("keydown", (event) => {
    if (!slider() || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (document.querySelector("dialog[open]")) return;
    const on = event.target === slider();
    if (event.key === " " && (on || (active() && event.target === document.body))) {
      event.preventDefault();
      toggle();
    }
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && !on && active() && event.target === document.body) {
      event.preventDefault();
      stepBy(by);
    }
  });
})();
