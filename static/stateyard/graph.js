// The execution page: the graph, the step table and the panel share one selection; zoom of graphs.
// Every control is a real link or form. This script replaces the page load by a smaller request.
"use strict";
(() => {
  const MAX_SCALE = 3;
  const MIN_SCALE = 0.02;
  const READABLE = 0.92; // the smallest text has 11.5 px, and stays above 10.5
  const COMPACT_READABLE = 0.82; // of names only, which have 13 px
  let scale = 1;
  let fitted = false;

  const plain = ({ button, ctrlKey, metaKey, shiftKey, altKey }) => !(button || ctrlKey || metaKey || shiftKey || altKey);
  const currentUrl = () => new URL(location.href);

  // -- zoom -------------------------------------------------------------------------------------

  function graphParts() {
    const graph = document.querySelector("[data-graph]");
    return graph && { graph, svg: graph.querySelector("svg.flow") };
  }

  /** Return how far something smaller than its room stands from the room's border. */
  const middle = (size, room) => Math.max(0, (room - size) / 2);

  function setScale(next, point) {
    const parts = graphParts();
    if (!parts) return;
    scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, next));
    const { graph, svg } = parts;
    const { width, height } = svg.viewBox.baseVal;
    // what is in the middle, or at the pointer, stays there
    const at = point ?? { x: graph.clientWidth / 2, y: graph.clientHeight / 2 };
    const before = svg.clientWidth / width || scale;
    const x = (graph.scrollLeft + at.x - middle(svg.clientWidth, graph.clientWidth)) / before;
    const y = (graph.scrollTop + at.y) / before;
    svg.setAttribute("width", Math.round(width * scale));
    svg.setAttribute("height", Math.round(height * scale));
    graph.scrollTo(x * scale - at.x + middle(width * scale, graph.clientWidth), y * scale - at.y);
    holdHeads();
    document.dispatchEvent(new Event("scaled-graph"));
  }

  // The words in the head of a Parallel or Map that is wider than the frame stay in sight.
  function holdHeads() {
    for (const head of document.querySelectorAll("[data-head]")) {
      const hidden = head.closest("[data-graph]").scrollLeft / scale - head.dataset.head;
      head.style.translate = `${Math.max(0, Math.min(hidden, head.dataset.slack))}px`;
    }
  }
  document.addEventListener("scroll", holdHeads, true);

  /** Show the whole graph, or as much of it as there is room for at a scale of `minimum`. */
  function fit(minimum = MIN_SCALE) {
    const parts = graphParts();
    if (!parts?.graph.clientWidth) return;
    document.dispatchEvent(new Event("fit-graph"));
    const { width, height } = parts.svg.viewBox.baseVal;
    // a frame that is as high as its graph may grow
    const room = Math.max(parts.graph.clientHeight, parseFloat(getComputedStyle(parts.graph).maxHeight) || 0);
    const wanted = Math.min(parts.graph.clientWidth / width, room / height, 1);
    setScale(Math.max(wanted, minimum));
    const start = parts.svg.querySelector("[data-start]");
    if (start) {
      // Start stands at one border of the graph: in that direction, this scrolls to it
      const { x, y } = start.getBBox();
      parts.graph.scrollTo((x + 31) * scale - parts.graph.clientWidth / 2, y * scale - parts.graph.clientHeight / 2);
    }
    fitted = true;
  }

  const readableScale = () => (graphParts()?.graph.dataset.compact === undefined ? READABLE : COMPACT_READABLE);

  // A graph opens whole where it can be read so, else around the chosen state.
  function openGraph() {
    fit(readableScale());
    showChosenNode(true);
  }

  // Who looks for a state wants to read it: a graph that was made smaller grows.
  function zoomToText() {
    if (scale < readableScale()) setScale(readableScale());
  }
  document.addEventListener("find-state", zoomToText);

  // Bring the chosen state into view; one that is in view stays where it is, unless it is to be centred.
  function showChosenNode(centred = false) {
    const parts = graphParts();
    const box = parts?.svg.querySelector('a[aria-current="true"] .box');
    if (!box || !parts.graph.clientWidth) return;
    const { x, y, width, height } = box.getBBox();
    const { graph } = parts;
    const shift = middle(parts.svg.clientWidth, graph.clientWidth);
    const axis = (start, size, scrolled, room) => {
      const [from, to] = [start * scale, (start + size) * scale];
      if (to - from > room) return Math.min(Math.max(scrolled, from - 20), to - room);
      return !centred && from >= scrolled && to <= scrolled + room ? scrolled : (from + to - room) / 2;
    };
    const aboveFold = innerHeight - graph.getBoundingClientRect().top;
    const room = aboveFold > 200 ? Math.min(aboveFold, graph.clientHeight) : graph.clientHeight;
    graph.scrollTo(axis(x + shift / scale, width, graph.scrollLeft, graph.clientWidth), axis(y, height, graph.scrollTop, room));
  }

  document.addEventListener("click", (event) => {
    const by = event.target.closest("[data-zoom-by]")?.dataset.zoomBy;
    if (by === "0") fit();
    else if (by) setScale(scale * (by === "1" ? 1.25 : 0.8));
  });
  document.addEventListener(
    "wheel",
    (event) => {
      const graph = event.target.closest("[data-graph]");
      if (!graph || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      const room = graph.getBoundingClientRect();
      setScale(scale * (event.deltaY < 0 ? 1.1 : 0.9), { x: event.clientX - room.left, y: event.clientY - room.top });
    },
    { passive: false },
  );
  document.addEventListener("pointerdown", (event) => {
    const graph = event.target.closest("[data-graph]");
    if (!graph || event.button !== 0 || event.target.closest("a") || event.pointerType === "touch") return;
    const { scrollLeft, scrollTop } = graph;
    const move = (next) => {
      graph.scrollLeft = scrollLeft + event.clientX - next.clientX;
      graph.scrollTop = scrollTop + event.clientY - next.clientY;
    };
    const stop = () => document.removeEventListener("pointermove", move);
    document.addEventListener("pointermove", move);
    document.addEventListener("pointerup", stop, { once: true });
  });

  // -- one selection ----------------------------------------------------------------------------

  // The definition opens at the chosen state.
  function leadToDefinition() {
    const link = document.querySelector("a[data-definition-link]");
    if (!link) return;
    const place = document.querySelector('[data-node][aria-current="true"]')?.dataset.node;
    const address = new URL(link.href);
    if (place) address.searchParams.set("state", place);
    else address.searchParams.delete("state");
    link.href = address.href;
  }

  function markStep(step) {
    for (const box of document.querySelectorAll("[data-node]")) {
      if (box.dataset.step === step) box.setAttribute("aria-current", "true");
      else box.removeAttribute("aria-current");
    }
    leadToDefinition();
    for (const row of document.querySelectorAll("[data-row][aria-selected], [data-bar]")) {
      row.setAttribute("aria-selected", String((row.dataset.step ?? row.dataset.stateName) === step));
    }
  }

  // A row of tabs that is wider than the panel begins with as many as leave the chosen one in sight.
  function showChosenTab() {
    const tab = document.querySelector("#panel .tabs [aria-current]");
    const row = tab?.parentElement;
    if (row) row.scrollLeft = Math.max(0, tab.offsetLeft + tab.offsetWidth + 28 - row.clientWidth);
  }

  const stepOfPanel = () => document.querySelector("#panel > header")?.dataset.stateName ?? "";

  async function showPanel(address) {
    markStep(address.searchParams.get("step") ?? stepOfPanel());
    const source = `${address.pathname}_step${address.search}`;
    await htmx.ajax("GET", source, { source: "#panel", target: "#panel", swap: "innerHTML" }).catch(() => {});
    if (document.querySelector("#panel > .failed-load")) return false; // a note says so, and has a button
    markStep(stepOfPanel());
    showChosenTab();
    return true;
  }

  async function select(changes, focus) {
    const address = currentUrl();
    const small = scale < readableScale();
    for (const [key, value] of Object.entries(changes)) {
      // an empty step is a choice, too: the execution itself
      if (value || key === "step") address.searchParams.set(key, value);
      else address.searchParams.delete(key);
    }
    address.hash = "";
    // Back leads from state to state; visits, iterations and tabs of one state share an entry
    const another = "step" in changes && changes.step !== currentUrl().searchParams.get("step");
    if (another) history.pushState({}, "", address);
    else history.replaceState(history.state, "", address);
    const focused = document.activeElement;
    const loaded = await showPanel(address);
    if (small) {
      zoomToText();
      showChosenNode(true);
    }
    if (!loaded) return;
    const title = document.getElementById("panel-title");
    if (!focus || !title) return;
    // who has gone on to something outside the panel meanwhile keeps the focus there
    const current = document.activeElement;
    if (![focused, document.body].includes(current) && !title.closest("#panel").contains(current)) return;
    title.focus({ preventScroll: true });
    const { top } = title.getBoundingClientRect();
    if (top < 0 || top > innerHeight - 80) title.scrollIntoView({ block: "start" });
  }

  let shownEvent = currentUrl().searchParams.get("at"); // where the time machine stands
  document.addEventListener("past", (event) => (shownEvent = String(event.detail)));

  addEventListener("popstate", (event) => {
    if (!document.getElementById("panel") || event.state?.htmx) return;
    const parameters = currentUrl().searchParams;
    if (parameters.get("at") !== shownEvent) return location.reload(); // all of the page is of another time
    showView(parameters.get("view") ?? "");
    showPanel(currentUrl());
    if ((parameters.get("view") || "graph") !== "graph") readTree();
  });

  function followLink(link) {
    const { node, step, select: chosen, selectVisit, selectIteration, tab, viewLink } = link.dataset;
    if (node) select({ step, visit: "", iteration: "" }, true);
    else if (selectVisit) select({ step: chosen, visit: selectVisit }, true);
    else if (chosen !== undefined) {
      select({ step: chosen, visit: "", iteration: selectIteration ?? "" }, true);
    }
    else if (tab) select({ tab }, false);
    else if (viewLink) chooseView(viewLink);
    else if (link.dataset.stepFilterLink !== undefined) loadTree(new URL(link.href));
    else return false;
    return true;
  }

  // The server filters and sorts the step table; the rest of the page stays as it is.
  function loadTree(address) {
    history.pushState({}, "", address);
    readTree();
  }

  let asked = ""; // the address whose table is on its way

  const tableAddress = () => location.pathname + location.search;

  /** Read the table of the view that is chosen. One that is chosen meanwhile is read after it: the first
   *  answer replaces the element that the second one would go to. */
  async function readTree() {
    if (asked) return;
    const source = (asked = tableAddress());
    try {
      await htmx.ajax("GET", source, { source: "#steps", target: "#steps", select: "#steps", swap: "outerHTML" });
    } catch {
      // a note says so, and has a button
    } finally {
      // also after a failure; each address is asked for once, so that this ends without a network
      asked = "";
      if (source !== tableAddress() && (currentUrl().searchParams.get("view") || "graph") !== "graph") readTree();
    }
  }

  function filterTree(form) {
    const address = currentUrl();
    for (const [key, value] of new FormData(form)) {
      if (form.elements[key].type === "hidden") continue; // the address has it, and may be newer
      if (value) address.searchParams.set(key, value);
      else address.searchParams.delete(key);
    }
    loadTree(address);
  }

  /** Show one of the views; the one without a name is the graph. */
  function showView(name) {
    const card = document.querySelector("[data-view]");
    if (!card) return;
    card.dataset.view = name;
    for (const link of document.querySelectorAll("[data-view-link]")) {
      if (link.dataset.viewLink === (name || "graph")) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if ((name || "graph") === "graph" && !fitted) openGraph();
  }

  function chooseView(name) {
    const address = currentUrl();
    if (name === (address.searchParams.get("view") || "graph")) return;
    address.searchParams.set("view", name);
    history.pushState({}, "", address);
    showView(name);
    if (name !== "graph") readTree(); // the page brings the tables only where they are in view
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || !plain(event) || !document.getElementById("panel") || !followLink(link)) return;
    event.preventDefault();
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-step-filter]")) {
      event.preventDefault();
      filterTree(event.target);
    }
    if (!event.target.matches("form[data-jump-form]")) return;
    event.preventDefault();
    select({ visit: "", ...Object.fromEntries(new FormData(event.target)) }, true);
  });

  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-step-filter]");
    if (form && event.target.matches("select")) filterTree(form);
  });

  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target?.id === "panel") {
      markStep(stepOfPanel());
      showChosenTab();
      showChosenNode(); // the execution went on, or the time machine
    }
  });
  document.addEventListener("turned", openGraph);
  document.addEventListener("redrawn", () => (fitted ? setScale(scale) : openGraph()));
  // Beside the text of a definition: the state that the address names, in the text and in the graph.
  function markPlace() {
    const id = /^#src-(n\d+)$/.exec(location.hash)?.[1] ?? currentUrl().searchParams.get("state");
    for (const link of document.querySelectorAll("a[data-place]")) {
      if (link.dataset.place === id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const lines of document.querySelectorAll(".definition .src")) lines.classList.toggle("chosen", lines.id === `src-${id}`);
  }
  addEventListener("hashchange", () => {
    markPlace();
    if (location.hash.startsWith("#src-")) showChosenNode();
  });

  // A press on the lines of a state leads to its box, the innermost one that the graph shows.
  document.addEventListener("click", (event) => {
    let lines = event.target.closest?.("a") ? null : event.target.closest?.(".definition .src");
    const box = (state) => document.querySelector(`a[data-place="${state.id.slice("src-".length)}"]`);
    while (lines && !box(lines)) lines = lines.parentElement.closest(".src");
    if (!lines || !getSelection().isCollapsed) return;
    const address = currentUrl();
    address.searchParams.delete("state");
    address.hash = lines.id;
    history.replaceState(history.state, "", address);
    markPlace();
    showChosenNode();
  });

  document.addEventListener("DOMContentLoaded", () => {
    markPlace();
    openGraph();
    showChosenTab();
  });
})();
