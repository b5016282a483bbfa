// The choice of two executions to compare: the bar says what is chosen, filters keep it.
"use strict";
(() => {
  const isSide = (element) => element.matches?.('.compare-choices input[type="radio"]');

  function showSide(radio) {
    const bar = document.querySelector(`[data-compare-side="${radio.name}"]`);
    bar.dataset.chosen = "";
    bar.querySelector("[data-compare-name]").textContent = radio.dataset.words;
    bar.querySelector("[data-compare-about]")?.remove();
    const kept = document.querySelector(`[data-kept-side="${radio.name}"]`);
    kept.value = radio.value;
  }

  function clearSide(side) {
    const bar = document.querySelector(`[data-compare-side="${side}"]`);
    delete bar.dataset.chosen;
    bar.querySelector("[data-compare-name]").textContent = "not chosen";
    document.querySelector(`[data-kept-side="${side}"]`).value = "";
  }

  document.addEventListener("change", (event) => {
    const radio = event.target;
    if (!isSide(radio)) return;
    // the same execution on both sides: the last choice wins
    const other = radio.closest("tr").querySelector(`input[type="radio"]:checked:not([name="${radio.name}"])`);
    if (other) {
      other.checked = false;
      clearSide(other.name);
    }
    showSide(radio);
    document.getElementById("announce").textContent = `${radio.dataset.side}: ${radio.dataset.words}`;
    if (radio.name === "a") listSameMachine();
  });

  // A that was pressed: B is most often of the same state machine, so the list becomes that of A's,
  // unless B is chosen already. Arrow keys pass over many rows, and leave the list as it is.
  let passing = false;
  document.addEventListener("keydown", (event) => {
    passing = event.key.startsWith("Arrow");
  });
  document.addEventListener("keyup", () => {
    passing = false;
  });

  function listSameMachine() {
    const form = document.getElementById("choices");
    const other = document.querySelector('[data-kept-side="b"]').value;
    if (!passing && !other && !form.elements.machine.value && !form.elements.all) form.requestSubmit();
  }

  function showChecked() {
    for (const radio of document.querySelectorAll('.compare-choices input[type="radio"]:checked')) showSide(radio);
    showReady();
  }

  // The button acts when there are two: chosen in the list, or typed as an ARN.
  const hasSide = (side) =>
    document.querySelector(`[data-compare-side="${side}"]`).dataset.chosen !== undefined || document.getElementById(side).value.trim();
  const button = () => document.querySelector("[data-compare-button]");
  function showReady() {
    const missing = ["a", "b"].filter((side) => !hasSide(side)).map((side) => side.toUpperCase());
    button().setAttribute("aria-disabled", String(missing.length > 0));
    button().title = missing.length ? `Choose ${missing.join(" and ")} first` : "";
  }
  document.addEventListener("change", showReady);
  document.addEventListener("input", showReady);
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "compare" || button().ariaDisabled !== "true") return;
    event.preventDefault();
    document.getElementById("announce").textContent = button().title;
  });
  document.addEventListener("DOMContentLoaded", showChecked);
  window.addEventListener("pageshow", showChecked);
})();
