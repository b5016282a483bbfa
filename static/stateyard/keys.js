// Keyboard shortcuts, dialogs, copying, display settings. Readers can switch all single-letter keys off
// (WCAG 2.1.4).
"use strict";
(() => {
  const root = document.documentElement;
  const SWITCH = "stateyard-keys";
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

  // Back and forward show another state of the page: a question that stands before it is about none of it.
  addEventListener("popstate", () => {
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
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

  function setPreference(name, value) {
    if (name === "theme" && value === "system") delete root.dataset.theme;
    else root.dataset[name] = value;
    for (const button of document.querySelectorAll(`button[name="${name}"]`)) {
      button.setAttribute("aria-pressed", String(button.value === value));
    }
    document.dispatchEvent(new CustomEvent(name));
    htmx.ajax("POST", "/preferences/", { values: { [name]: value }, swap: "none" });
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-preferences]") || !event.submitter) return;
    event.preventDefault();
    setPreference(event.submitter.name, event.submitter.value);
  });

  // -- keys -------------------------------------------------------------------------------------

  const clickOn = (selector) => document.querySelector(selector)?.click();
  const GO_TO = { o: "/", m: "/machines/", e: "/executions/", n: "/notifications/", s: "/schedules/" };
  // The help leaves out what this server does not have.
  const isOffered = (key) => document.querySelector(`#help [data-go-to="${key}"]`) !== null;
  const KEYS = {
    "?": () => openDialog("help"),
    "/": () => document.querySelector("[data-filter]")?.focus(),
    a: () => clickOn("[data-to-actions]"),
    s: () => clickOn('[data-shortcut="s"]'),
    c: () => clickOn('[data-shortcut="c"]'),
    f: () => clickOn('[data-shortcut="f"]'),
    "[": () => clickOn('[data-shortcut="["]'),
    "]": () => clickOn('[data-shortcut="]"]'),
    p: () => clickOn("[data-pause]"),
    z: () => clickOn('[data-zoom-by="0"]'),
    t: () => setPreference("clock", root.dataset.clock === "local" ? "utc" : "local"),
  };

  const keysDisabled = () => localStorage.getItem(SWITCH) === "off";
  const TYPED_INTO = "input:not([type=checkbox], [type=radio], [type=button]), textarea, select";
  const isEditable = (element) =>
    element.isContentEditable || element.matches(TYPED_INTO) || element.closest(".ace_editor");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isEditable(event.target)) return;
    if (keysDisabled() && event.key !== "?") return;
    if (document.querySelector("dialog[open]")) return;
    if (prefix === "g" && GO_TO[event.key] && isOffered(event.key)) {
      location.assign(GO_TO[event.key] + (new URLSearchParams(location.search).has("region") ? `?region=${new URLSearchParams(location.search).get("region")}` : ""));
    } else if (KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
    prefix = event.key === "g" ? "g" : "";
  });

  function updateSwitch(button) {
    button.setAttribute("aria-pressed", String(!keysDisabled()));
    button.textContent = `Single-letter keys are ${keysDisabled() ? "off" : "on"}`;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-keys-switch]");
    if (!button) return;
    localStorage.setItem(SWITCH, keysDisabled() ? "on" : "off");
    updateSwitch(button);
  });
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-keys-switch]");
    if (button) updateSwitch(button);
    // On a phone the menu and the tabs scroll: show the current entry first.
    for (const current of document.querySelectorAll(".nav [aria-current], .tabs [aria-current]")) {
      const bar = current.closest(".nav, .tabs");
      bar.scrollLeft = current.offsetLeft - bar.offsetLeft - (bar.clientWidth - current.offsetWidth) / 2;
    }
    for (const wide of document.querySelectorAll("[data-newest-last]")) wide.scrollLeft = wide.scrollWidth;
  });
})();
