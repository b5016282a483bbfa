// Keys, dialogs, copying, display settings. All single-letter keys can be switched off (WCAG 2.1.4).
"use strict";
(() => {
  const root = document.documentElement;
  const SWITCH = "stepyard-keys";
  let prefix = "";

  // -- dialogs ----------------------------------------------------------------------------------

  function openDialog(id) {
    const dialog = document.getElementById(id);
    if (!dialog?.showModal) return false;
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
    dialog.showModal();
    return true;
  }

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener && openDialog(opener.dataset.dialog)) event.preventDefault();
    const closer = event.target.closest("[data-close]");
    if (closer?.closest("dialog")) {
      event.preventDefault();
      closer.closest("dialog").close();
    }
    if (event.target.matches("dialog")) event.target.close();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  // -- copying ----------------------------------------------------------------------------------

  async function textOf(button) {
    if (button.dataset.copyText) return button.dataset.copyText;
    if (button.dataset.copyFrom) return (await fetch(button.dataset.copyFrom)).text();
    const home = button.closest("section");
    return home.querySelector("template[data-raw]").content.textContent;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-text]");
    if (!button) return;
    await navigator.clipboard.writeText(await textOf(button));
    const announce = document.getElementById("announce");
    if (announce) announce.textContent = "Copied.";
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 1200);
  });

  // -- theme and clock --------------------------------------------------------------------------

  function prefer(name, value) {
    if (name === "theme" && value === "system") delete root.dataset.theme;
    else root.dataset[name] = value;
    for (const one of document.querySelectorAll(`button[name="${name}"]`)) {
      one.setAttribute("aria-pressed", String(one.value === value));
    }
    document.dispatchEvent(new CustomEvent(name));
    htmx.ajax("POST", "/preferences/", { values: { [name]: value }, swap: "none" });
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-preferences]") || !event.submitter) return;
    event.preventDefault();
    prefer(event.submitter.name, event.submitter.value);
  });

  // -- keys -------------------------------------------------------------------------------------

  const press = (selector) => document.querySelector(selector)?.click();
  const GO = { o: "/", m: "/machines/", e: "/executions/" };
  const KEYS = {
    "?": () => openDialog("help"),
    "/": () => document.querySelector("[data-filter]")?.focus(),
    s: () => press('[data-key="s"]'),
    c: () => press('[data-key="c"]'),
    f: () => press('[data-key="f"]'),
    p: () => press("[data-pause]"),
    z: () => press('[data-zoom-by="0"]'),
    t: () => prefer("clock", root.dataset.clock === "local" ? "utc" : "local"),
  };

  const off = () => localStorage.getItem(SWITCH) === "off";
  const writes = (element) =>
    element.isContentEditable || element.matches("input, textarea, select") || element.closest(".ace_editor");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target)) return;
    if (off() && event.key !== "?") return;
    if (document.querySelector("dialog[open]")) return;
    if (prefix === "g" && GO[event.key]) {
      location.assign(GO[event.key] + (new URLSearchParams(location.search).has("region") ? `?region=${new URLSearchParams(location.search).get("region")}` : ""));
    } else if (KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
    prefix = event.key === "g" ? "g" : "";
  });

  function tellSwitch(button) {
    button.setAttribute("aria-pressed", String(!off()));
    button.textContent = `Single-letter keys are ${off() ? "off" : "on"}`;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-keys-switch]");
    if (!button) return;
    localStorage.setItem(SWITCH, off() ? "on" : "off");
    tellSwitch(button);
  });
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-keys-switch]");
    if (button) tellSwitch(button);
    for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
      const row = tab.parentElement; // on a phone the open tab may stand outside its row
      row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
    }
  });
})();
