// Copy the state in the panel, and insert copied states: Ctrl+C and Ctrl+V in the graph and beside it. The
// clipboard holds JSON, so that states go from one editor to another, and into the text.
"use strict";
(() => {
  const panel = () => document.getElementById("state-panel");
  const announce = (text) => {
    document.getElementById("announce").textContent = text;
  };
  const copied = () => panel()?.querySelector("template[data-copied]")?.content.textContent;

  /** Return whether keys are meant for the graph: not for a text field, and not for text that is marked. */
  function isForGraph(target) {
    const element = target instanceof Element ? target : document.body;
    if (!panel() || element.closest("input, textarea, select, .ace_editor") || !getSelection().isCollapsed) return false;
    return Boolean(element.closest("#preview, #state-panel")) || element === document.body;
  }

  document.addEventListener("copy", (event) => {
    const text = copied();
    if (!text || !isForGraph(event.target)) return;
    event.preventDefault();
    event.clipboardData.setData("text/plain", text);
    announce(`Copied ${panel().querySelector("[data-selected]").dataset.selected}.`);
  });

  document.addEventListener("paste", (event) => {
    if (!isForGraph(event.target)) return;
    const palette = panel().querySelector(".palette");
    if (!palette && !copied()) return announce("Select a state or + first to insert the copy there.");
    event.preventDefault();
    const pasted = event.clipboardData.getData("text/plain");
    document.dispatchEvent(new CustomEvent("paste-states", { detail: { pasted, ...(palette && { state: "", ...palette.dataset }) } }));
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-copy-state]")) document.execCommand("copy");
  });
})();
