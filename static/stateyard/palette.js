// The command palette: Ctrl+K (or ⌘K) opens it on every page, also while somebody types in a field.
"use strict";
(() => {
  const palette = () => document.getElementById("palette");
  const field = () => document.getElementById("palette-text");
  const matches = () => [...palette().querySelectorAll("[data-match]")];
  let pressedEnter = false; // before the matches of the text were there
  let focused = -1; // which match had the focus when others came

  function open() {
    if (!palette() || palette().open) return;
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
    palette().showModal();
    field().select();
    htmx.trigger(field(), "palette-open");
  }

  // In the capture phase: the editor has a use of its own for this key.
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      if (!palette()) return;
      event.preventDefault();
      event.stopPropagation();
      if (palette().open) palette().close();
      else open();
    },
    true,
  );

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette]") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    open();
  });

  function move(by) {
    const all = matches();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement) + by;
    if (at < 0) field().focus();
    else all[Math.min(at, all.length - 1)].focus();
  }

  const isCurrent = () => palette().dataset.shown === field().value.trim();

  document.addEventListener("keydown", (event) => {
    if (!palette()?.open || !palette().contains(event.target)) return;
    if (event.key === "Escape") {
      event.preventDefault(); // a search field with a text in it would only be emptied
      palette().close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && event.target === field()) {
      event.preventDefault();
      if (isCurrent()) matches()[0]?.click();
      else pressedEnter = true;
    }
  });

  document.addEventListener("input", (event) => {
    if (event.target === field()) pressedEnter = false;
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target?.id === "palette-matches") focused = matches().indexOf(document.activeElement);
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id !== "palette-matches") return;
    if (focused >= 0) (matches()[focused] ?? field()).focus();
    const asked = new URL(event.detail.xhr.responseURL).searchParams.get("q") ?? "";
    palette().dataset.shown = asked.trim();
    if (pressedEnter && isCurrent()) matches()[0]?.click();
  });
})();
