// Tools of a large graph: find a state, full screen, keys. mini_map.js has the small map of the whole.
"use strict";
(() => {
  const graph = () => document.querySelector("[data-graph]");

  // -- find a state -----------------------------------------------------------------------------

  let matches = [];
  let current = -1;

  let folded = [];

  // States that the graph does not show stand in the table, or in the text of a definition.
  function foldedStates(wanted) {
    const rows = [...document.querySelectorAll("#step-table [data-row][data-step]")];
    const names = rows.map((row) => ({ name: row.dataset.step, place: "" }));
    for (const state of document.querySelectorAll(".definition .src")) {
      const name = /^"((?:[^"\\]|\\.)*)"/.exec(state.textContent)?.[0] ?? '""';
      names.push({ name: JSON.parse(name), place: state.id });
    }
    for (const { dataset } of document.querySelectorAll("#state-list > li")) names.push({ name: dataset.name, edited: true });
    return names.filter(({ name }) => name.toLowerCase().includes(wanted));
  }

  // The server unfolds what holds a state of an execution; the text of a definition has them all.
  function openFolded() {
    if (folded[0].edited) {
      document.dispatchEvent(new CustomEvent("unfold-state", { detail: folded[0].name }));
      return;
    }
    if (folded[0].place) {
      location.hash = folded[0].place;
      return;
    }
    const address = new URL(location.href);
    address.searchParams.set("step", folded[0].name);
    for (const key of ["visit", "iteration"]) address.searchParams.delete(key);
    location.assign(address);
  }

  function find(text) {
    for (const node of matches) node.classList.remove("found");
    const wanted = text.trim().toLowerCase();
    const nodes = wanted ? [...document.querySelectorAll("svg.flow [data-step]")] : [];
    matches = nodes.filter((node) => node.dataset.step.toLowerCase().includes(wanted));
    for (const node of matches) node.classList.add("found");
    current = -1;
    folded = wanted && !matches.length ? foldedStates(wanted) : [];
    const found = matches.length || folded.length;
    const count = `${found} ${found === 1 ? "state" : "states"}${folded.length ? " in folded groups" : ""}`;
    document.querySelector("[data-found-states]").textContent = wanted ? count : "";
    document.querySelector("[data-find-state]").setAttribute("aria-invalid", String(Boolean(wanted) && !found));
    if (matches.length) next(1);
  }

  function next(by) {
    current = (current + by + matches.length) % matches.length;
    document.dispatchEvent(new Event("find-state"));
    const box = matches[current].querySelector(".box").getBoundingClientRect();
    const room = graph().getBoundingClientRect();
    graph().scrollBy({
      left: box.left + box.width / 2 - room.left - room.width / 2,
      top: box.top + Math.min(box.height, room.height) / 2 - room.top - room.height / 2,
    });
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-find-state]")) find(event.target.value);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.("[data-find-state]")) return;
    if (event.key === "Enter" && folded.length) openFolded();
    if (event.key === "Enter" && matches.length) {
      event.preventDefault();
      // Enter opens the only match; of several it goes from one to the next
      if (matches.length === 1) matches[0].dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
      else next(event.shiftKey ? -1 : 1);
    }
    if (event.key === "Escape") {
      event.target.value = "";
      find("");
    }
  });

  // -- full screen ------------------------------------------------------------------------------

  document.addEventListener("click", async (event) => {
    if (!event.target.closest("[data-full-screen]")) return;
    if (document.fullscreenElement) await document.exitFullscreen();
    else await (event.target.closest("[data-whole]") ?? event.target.closest(".card")).requestFullscreen();
  });
  document.addEventListener("fullscreenchange", () => {
    const button = document.querySelector("[data-full-screen]");
    button?.setAttribute("aria-pressed", String(Boolean(document.fullscreenElement)));
  });

  // -- keys, while the graph or a state in it has the focus ---------------------------------------

  const PAN = 80; // pixels
  const PANS = { ArrowLeft: [-PAN, 0], ArrowRight: [PAN, 0], ArrowUp: [0, -PAN], ArrowDown: [0, PAN] };
  const ZOOMS = { "+": "1", "=": "1", "-": "-1", 0: "0" };

  document.addEventListener("keydown", (event) => {
    const room = event.target.closest?.("[data-graph]");
    if (!room || event.ctrlKey || event.metaKey || event.altKey) return;
    const pan = PANS[event.key];
    const zoom = ZOOMS[event.key];
    if (!pan && zoom === undefined) return;
    event.preventDefault();
    if (pan) room.scrollBy({ left: pan[0], top: pan[1] });
    else document.querySelector(`[data-zoom-by="${zoom}"]`)?.click();
  });
})();
