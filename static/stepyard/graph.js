// The execution's page: one selection for graph, table and panel; zoom.
// Every press follows a real link; here it only becomes a smaller request that keeps the page.
"use strict";
(() => {
  const MOST = 3;
  const LEAST = 0.3;
  let scale = 1;
  let fitted = false;

  const plain = (event) =>
    event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const here = () => new URL(location.href);

  // -- zoom -------------------------------------------------------------------------------------

  function picture() {
    const graph = document.querySelector("[data-graph]");
    return graph && { graph, svg: graph.querySelector("svg.flow") };
  }

  function apply(next) {
    const found = picture();
    if (!found) return;
    scale = Math.min(MOST, Math.max(LEAST, next));
    const { width, height } = found.svg.viewBox.baseVal;
    found.svg.setAttribute("width", Math.round(width * scale));
    found.svg.setAttribute("height", Math.round(height * scale));
  }

  function fit(least = LEAST) {
    const found = picture();
    if (!found || !found.graph.clientWidth) return;
    const { width, height } = found.svg.viewBox.baseVal;
    const room = Math.max(found.graph.clientHeight, innerHeight * 0.7);
    const wanted = Math.min(found.graph.clientWidth / width, room / height, 1);
    apply(Math.max(wanted, least));
    const start = found.svg.querySelector("[data-start]");
    if (start) {
      found.graph.scrollLeft = start.x.baseVal.value * scale - found.graph.clientWidth / 2 + 31;
    }
    fitted = true;
  }

  document.addEventListener("click", (event) => {
    const by = event.target.closest("[data-zoom-by]")?.dataset.zoomBy;
    if (by === "0") fit();
    else if (by) apply(scale * (by === "1" ? 1.25 : 0.8));
  });
  document.addEventListener(
    "wheel",
    (event) => {
      if (!(event.ctrlKey || event.metaKey) || !event.target.closest("[data-graph]")) return;
      event.preventDefault();
      apply(scale * (event.deltaY < 0 ? 1.1 : 0.9));
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

  function mark(step) {
    for (const box of document.querySelectorAll("[data-node]")) {
      if (box.dataset.step === step) box.setAttribute("aria-current", "true");
      else box.removeAttribute("aria-current");
    }
    for (const row of document.querySelectorAll("[data-row][aria-selected], [data-bar]")) {
      row.setAttribute("aria-selected", String((row.dataset.step ?? row.dataset.of) === step));
    }
  }

  async function showPanel(address) {
    mark(address.searchParams.get("step") ?? "");
    const source = `${address.pathname}_step${address.search}`;
    await htmx.ajax("GET", source, { source: "#panel", target: "#panel", swap: "innerHTML" });
    mark(document.querySelector("#panel > header")?.dataset.of ?? "");
  }

  async function select(changes, focus) {
    const address = here();
    for (const [key, value] of Object.entries(changes)) {
      if (value) address.searchParams.set(key, value);
      else address.searchParams.delete(key);
    }
    address.hash = "";
    history.pushState({}, "", address);
    await showPanel(address);
    const title = document.getElementById("panel-title");
    if (!focus || !title) return;
    title.focus({ preventScroll: true });
    const { top } = title.getBoundingClientRect();
    if (top < 0 || top > innerHeight - 80) title.scrollIntoView({ block: "start" });
  }

  addEventListener("popstate", (event) => {
    if (!document.getElementById("panel") || event.state?.htmx) return;
    showPanel(here());
    const source = location.pathname + location.search;
    htmx.ajax("GET", source, { source: "#steps", target: "#steps", select: "#steps", swap: "outerHTML" });
  });

  function pressed(link) {
    const { node, step, select: chosen, selectVisit, selectIteration, tab, show } = link.dataset;
    if (node) select({ step, visit: "", iteration: "" }, true);
    else if (selectVisit) select({ step: chosen, visit: selectVisit }, true);
    else if (chosen !== undefined) {
      select({ step: chosen, visit: "", iteration: selectIteration ?? "" }, true);
    }
    else if (tab) select({ tab }, false);
    else if (show) view(link, show);
    else if (link.dataset.treeLink !== undefined) loadTree(new URL(link.href));
    else return false;
    return true;
  }

  // The table of steps is filtered and sorted by the server; nothing else of the page changes.
  async function loadTree(address) {
    history.pushState({}, "", address);
    const source = address.pathname + address.search;
    await htmx.ajax("GET", source, { source: "#steps", target: "#steps", select: "#steps", swap: "outerHTML" });
  }

  function filterTree(form) {
    const address = here();
    for (const [key, value] of new FormData(form)) {
      if (key === "view") continue;
      if (value) address.searchParams.set(key, value);
      else address.searchParams.delete(key);
    }
    loadTree(address);
  }

  function view(link, name) {
    link.closest("[data-view]").dataset.view = name;
    for (const one of document.querySelectorAll("[data-show]")) {
      one.toggleAttribute("aria-current", one === link);
    }
    const address = here();
    address.searchParams.set("view", name);
    history.replaceState(history.state, "", address);
    if (name === "graph" && !fitted) fit(0.55);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || !plain(event) || !document.getElementById("panel") || !pressed(link)) return;
    event.preventDefault();
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-tree]")) {
      event.preventDefault();
      filterTree(event.target);
    }
    if (!event.target.matches("form[data-go]")) return;
    event.preventDefault();
    select({ visit: "", ...Object.fromEntries(new FormData(event.target)) }, true);
  });

  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-tree]");
    if (form && event.target.matches("select")) filterTree(form);
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id === "problems") apply(scale);
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target?.id === "preview") fitted ? apply(scale) : fit(0.55);
  });
  document.addEventListener("DOMContentLoaded", () => {
    fit(0.55);
  });
})();
