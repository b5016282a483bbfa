// Selected rows of a list: the checkbox above them all, ranges with Shift, and how many there are.
"use strict";
(() => {
  let anchor = null; // the last row that was clicked on

  const boxes = () => [...document.querySelectorAll('#executions tbody input[type="checkbox"]')];

  function showCount() {
    const count = document.getElementById("selected-count");
    if (!count) return;
    const all = boxes();
    const checked = all.filter((box) => box.checked).length;
    const words = checked === 1 ? "1 selected row" : `${checked} selected rows`;
    if (count.textContent !== words) count.textContent = words;
    const allMatching = document.querySelector('#bulk input[name="all"]')?.checked;
    for (const button of document.querySelectorAll("#bulk button[data-takes]")) {
      const two = button.dataset.takes === "two";
      const why = two && checked !== 2 ? "Select two executions" : "Select executions first";
      const ready = two ? checked === 2 : checked > 0 || allMatching;
      button.setAttribute("aria-disabled", String(!ready));
      button.title = ready ? "" : why;
    }
    const above = document.querySelector("[data-select-all]");
    if (!above) return;
    above.checked = checked > 0 && checked === all.length;
    above.indeterminate = checked > 0 && checked < all.length;
  }

  document.addEventListener("click", (event) => {
    const box = event.target;
    if (!box.matches?.('#executions tbody input[type="checkbox"]')) return;
    const all = boxes();
    const [from, to] = [all.findIndex((other) => other.id === anchor), all.indexOf(box)];
    if (event.shiftKey && from >= 0) {
      for (const between of all.slice(Math.min(from, to), Math.max(from, to) + 1)) between.checked = box.checked;
    }
    anchor = box.id;
    showCount();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-select-all]")) {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    showCount();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-select-none]")) return;
    for (const box of boxes()) box.checked = false;
    showCount();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("#bulk button[aria-disabled=true]");
    if (!button) return;
    event.preventDefault();
    document.getElementById("announce").textContent = button.title;
  });
  document.addEventListener("htmx:afterSettle", showCount);
  document.addEventListener("DOMContentLoaded", showCount);
  window.addEventListener("pageshow", showCount);
})();
