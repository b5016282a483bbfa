// Selected rows of a list: the checkbox above them all, ranges with Shift, how many there are, and
// the short way from a selected row to the actions and back. Back to the list has the rows selected that
// were: they are kept for this tab. A new visit begins with none.
"use strict";
(() => {
  let anchor = null; // the last row that was clicked on

  const boxes = () => [...document.querySelectorAll('#executions tbody input[type="checkbox"]')];

  // By address, since htmx overwrites the state of an entry in the browser's history.
  const place = () => `stateyard-selected ${location.pathname}${location.search}`;
  let isLeaving = false;

  function keepSelection() {
    const selected = boxes().filter((box) => box.checked).map((box) => box.id);
    try {
      if (isLeaving) return;
      if (selected.length) sessionStorage.setItem(place(), selected.join(" "));
      else sessionStorage.removeItem(place());
    } catch {
      // a browser that keeps nothing begins without a selection
    }
  }

  function restoreSelection() {
    const [loaded] = performance.getEntriesByType("navigation");
    try {
      if (loaded?.type === "navigate") return;
      const selected = (sessionStorage.getItem(place()) ?? "").split(" ");
      for (const box of boxes()) if (selected.includes(box.id)) box.checked = true;
    } catch {
      // as above
    }
  }

  function showCount() {
    const count = document.getElementById("selected-count");
    if (!count) return;
    const all = boxes();
    const checked = all.filter((box) => box.checked).length;
    keepSelection();
    const selected = checked === 0 ? "Select rows" : checked === 1 ? "1 selected row" : `${checked} selected rows`;
    const allMatching = document.querySelector('#bulk input[name="all"]')?.checked;
    showWords(count, allMatching ? count.closest("form").dataset.matching ?? "All matching" : selected);
    placeShortcut(checked, selected);
    for (const button of document.querySelectorAll("#bulk button[data-takes]")) {
      const two = button.dataset.takes === "two";
      let why = two ? (checked === 2 ? "" : "Select two executions") : checked ? "" : "Select executions first";
      if (!two) why = allMatching ? "" : countActedOn(button, all.filter((box) => box.checked)) || why;
      if (!two && allMatching) showLabel(button, "", " all matching");
      button.setAttribute("aria-disabled", String(why !== ""));
      button.title = why || button.dataset.title || "";
    }
    const above = document.querySelector("[data-select-all]");
    if (!above) return;
    above.checked = checked > 0 && checked === all.length;
    above.indeterminate = checked > 0 && checked < all.length;
  }

  // A phone has the room for the first word, which is the number.
  function showWords(place, words) {
    if (place.textContent === words) return;
    const [first] = words.split(" ");
    const rest = document.createElement("span");
    rest.className = "wide-word";
    rest.textContent = words.slice(first.length);
    place.replaceChildren(first, rest);
  }

  // "Redrive 1 of 3": how many of the selected rows an action would act on, as its dry run will
  // say. A phone has the room for the number only where it is another than that of the rows.
  // Returns why it would act on none.
  function countActedOn(button, selected) {
    const reasons = selected.map((box) => box.closest("tr").getAttribute(`data-no-${button.value}`)).filter(Boolean);
    const count = selected.length - reasons.length;
    if (!selected.length) showLabel(button, "", "…");
    else if (reasons.length) showLabel(button, ` ${count}`, ` of ${selected.length}`);
    else showLabel(button, "", ` ${count}`);
    if (count || !selected.length) return "";
    const subject = selected.length === 1 ? "It cannot" : `None of the ${selected.length} can`;
    return `${subject} be ${button.dataset.done}: ${[...new Set(reasons)].join("; ")}`;
  }

  function showLabel(button, count, wide) {
    const label = button.querySelector("span");
    const words = [button.dataset.word, button.dataset.more ?? "", count, wide];
    if (label.textContent === words.join("")) return;
    label.replaceChildren(
      ...words.map((text, place) => {
        if (place % 2 === 0) return text;
        const part = document.createElement("span");
        part.className = "wide-word";
        part.textContent = text;
        return part;
      }),
    );
  }

  // A button that only the keyboard sees, one Tab after the row that was selected last: there may be
  // a hundred links between that row and the actions.
  function placeShortcut(checked, words) {
    const last = document.getElementById(anchor) ?? boxes().find((box) => box.checked);
    const old = document.getElementById("to-actions");
    if (!checked || !last) return old?.remove();
    const button = old ?? document.createElement("button");
    button.id = "to-actions";
    button.type = "button";
    button.className = "button small visually-hidden";
    button.textContent = `Actions for ${words}`;
    if (button.previousElementSibling !== last) last.after(button);
    return undefined;
  }

  const announce = (words) => (document.getElementById("announce").textContent = words);

  function announceCount() {
    const words = document.getElementById("selected-count")?.textContent;
    if (words) announce(`${words}. Press Tab and Enter to go to the actions, Escape to return.`);
  }

  function goToActions() {
    const all = [...document.querySelectorAll("#bulk .actions button")].filter((button) => button.offsetParent);
    (all.find((button) => button.ariaDisabled !== "true") ?? all[0])?.focus();
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("#to-actions, [data-to-actions]")) goToActions();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !event.target.closest?.("#bulk")) return;
    (document.getElementById(anchor) ?? boxes()[0])?.focus();
  });

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
    announceCount();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-select-all]")) {
      for (const box of boxes()) box.checked = event.target.checked;
      showCount();
      announceCount();
    }
    showCount();
    if (event.target.matches?.('#bulk input[name="all"]')) announceCount();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-select-none]")) return;
    for (const box of boxes()) box.checked = false;
    showCount();
    announceCount();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("#bulk button[aria-disabled=true]");
    if (!button) return;
    event.preventDefault();
    announce(button.title);
  });
  document.addEventListener("htmx:afterSettle", showCount);
  document.addEventListener("DOMContentLoaded", () => {
    restoreSelection();
    showCount();
  });
  // Back and forward between filters load the page anew: what is selected belongs to the other address.
  addEventListener("popstate", (event) => (isLeaving = Boolean(event.state?.htmx)));
  window.addEventListener("pageshow", showCount);
})();
