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
  });

  function showChecked() {
    for (const radio of document.querySelectorAll('.compare-choices input[type="radio"]:checked')) showSide(radio);
  }
  document.addEventListener("DOMContentLoaded", showChecked);
  window.addEventListener("pageshow", showChecked);
})();
