// The event table: pages, filters, rows that open, deep links. It stands on two pages.
// Every press follows a real link; here it only becomes a smaller request that keeps the page.
"use strict";
(() => {
  const plain = (event) =>
    event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const here = () => new URL(location.href);
  const wanted = (address) => address.searchParams.get("event") ?? address.searchParams.get("at");

  async function load(address, push = true) {
    if (!document.getElementById("history")) return;
    if (push) history.pushState({}, "", address);
    const source = address.pathname + address.search;
    await htmx.ajax("GET", source, { source: "#history", target: "#history", select: "#history", swap: "outerHTML" });
    if (address.searchParams.get("event")) goTo(address.searchParams.get("event"));
  }

  function goTo(id, still = false) {
    const row = document.getElementById(`e${id}`);
    if (!row) return false;
    for (const one of document.querySelectorAll("tr.here")) one.classList.remove("here");
    row.classList.add("here");
    row.tabIndex = -1;
    if (!still) row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
    return true;
  }

  function goToPage(id) {
    const address = here();
    for (const key of ["page", "type", "state", "text", "since", "until"]) {
      address.searchParams.delete(key);
    }
    address.searchParams.set("event", id);
    address.hash = "";
    load(address);
  }

  function keepOpen() {
    const ids = [...document.querySelectorAll('[data-open][aria-expanded="true"]')];
    const address = here();
    address.searchParams.set("open", ids.map((one) => one.dataset.open).join("."));
    if (!ids.length) address.searchParams.delete("open");
    history.replaceState(history.state, "", address);
  }

  function open(link) {
    const row = link.closest("tr");
    const unfolded = link.getAttribute("aria-expanded") === "true";
    link.setAttribute("aria-expanded", String(!unfolded));
    if (unfolded) {
      row.nextElementSibling.remove();
    } else {
      const detail = document.createElement("tr");
      detail.className = "detail";
      detail.id = `d${link.dataset.open}`;
      const cell = detail.insertCell();
      cell.colSpan = 6;
      row.after(detail);
      htmx.ajax("GET", link.getAttribute("href"), { target: cell, swap: "innerHTML" });
    }
    keepOpen();
  }

  function filter(form) {
    const address = here();
    for (const [key, value] of new FormData(form)) {
      if (value) address.searchParams.set(key, value);
      else address.searchParams.delete(key);
    }
    for (const key of ["page", "event", "open"]) address.searchParams.delete(key);
    address.hash = "";
    load(address);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || !plain(event) || !document.getElementById("history")) return;
    const { open: opened, event: number } = link.dataset;
    if (opened) open(link);
    else if (number) goTo(number) || goToPage(number);
    else if (link.dataset.history !== undefined) load(new URL(link.href));
    else return;
    event.preventDefault();
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-history]")) return;
    event.preventDefault();
    filter(event.target);
  });
  document.addEventListener("change", (event) => {
    // What is typed waits for Enter or the button.
    const form = event.target.closest("form[data-history]");
    if (form && event.target.matches("select")) filter(form);
  });
  addEventListener("popstate", (event) => {
    if (!event.state?.htmx) load(here(), false);
  });
  document.addEventListener("DOMContentLoaded", () => {
    const id = wanted(here());
    const named = /^#e(\d+)$/.exec(location.hash)?.[1];
    if (!id && named && !goTo(named)) goToPage(named); // it stands on another page
    if (!id) return;
    // Beside the graph it is the time machine that the address is about.
    const aside = document.getElementById("panel") && !here().searchParams.get("event") && !here().hash;
    goTo(id, aside);
  });
})();
