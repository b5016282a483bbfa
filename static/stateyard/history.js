// The event table of two pages: paging, filters, rows that open, links to an event.
// Every control is a real link or form. This script replaces the page load by a smaller request.
"use strict";
(() => {
  const plain = (event) =>
    event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const currentUrl = () => new URL(location.href);
  const requestedEvent = (address) => address.searchParams.get("event") ?? address.searchParams.get("at");

  async function load(address, push = true) {
    if (!document.getElementById("history")) return;
    if (push) history.pushState({}, "", address);
    const source = address.pathname + address.search;
    await htmx.ajax("GET", source, { source: "#history", target: "#history", select: "#history", swap: "outerHTML" }).catch(() => {});
    if (address.searchParams.get("event")) goTo(address.searchParams.get("event"));
  }

  function goTo(id, keepScroll = false) {
    const row = document.getElementById(`e${id}`);
    if (!row) return false;
    for (const other of document.querySelectorAll("tr.current-event")) other.classList.remove("current-event");
    row.classList.add("current-event");
    row.tabIndex = -1;
    if (!keepScroll) row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
    return true;
  }

  function goToPage(id) {
    const address = currentUrl();
    for (const key of ["page", "type", "state", "text", "since", "until"]) {
      address.searchParams.delete(key);
    }
    address.searchParams.set("event", id);
    address.hash = "";
    load(address);
  }

  function keepOpen() {
    const ids = [...document.querySelectorAll('[data-open][aria-expanded="true"]')];
    const address = currentUrl();
    address.searchParams.set("open", ids.map((link) => link.dataset.open).join("."));
    if (!ids.length) address.searchParams.delete("open");
    history.replaceState(history.state, "", address);
  }

  function open(link) {
    const row = link.closest("tr");
    const isOpen = link.getAttribute("aria-expanded") === "true";
    link.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) {
      row.nextElementSibling.remove();
    } else {
      const detail = document.createElement("tr");
      detail.className = "detail";
      detail.id = `d${link.dataset.open}`;
      const cell = detail.insertCell();
      cell.colSpan = 6;
      row.after(detail);
      htmx.ajax("GET", link.getAttribute("href"), { target: cell, swap: "innerHTML" }).catch(() => {});
    }
    keepOpen();
  }

  function filter(form) {
    const address = currentUrl();
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
    // Text fields wait for Enter or the button.
    const form = event.target.closest("form[data-history]");
    if (form && event.target.matches("select")) filter(form);
  });
  addEventListener("popstate", (event) => {
    if (!event.state?.htmx) load(currentUrl(), false);
  });
  document.addEventListener("DOMContentLoaded", () => {
    const id = requestedEvent(currentUrl());
    const named = /^#e(\d+)$/.exec(location.hash)?.[1];
    if (!id && named && !goTo(named)) goToPage(named); // the event is on another page of the table
    if (!id) return;
    // On the page with the graph, ?at= belongs to the time machine: do not scroll to the row.
    const aside = document.getElementById("panel") && !currentUrl().searchParams.get("event") && !currentUrl().hash;
    goTo(id, aside);
  });
})();
