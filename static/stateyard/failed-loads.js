// A part of a page that could not be loaded says so where it would stand, with a button to try again.
// Polls have words of their own beside the heading; a session that has ended has a banner.
"use strict";
(() => {
  const SECONDS = 20; // how long a part may take; a network that is gone may swallow a request without a word

  const isPoll = ({ elt }) => "poll" in (elt?.dataset ?? {});
  const isRead = ({ requestConfig }) => requestConfig.verb === "get";

  document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.verb === "get" && !detail.timeout) detail.timeout = 1000 * SECONDS;
  });

  /** Return the element that the note stands in: where the part would be, or the page. */
  function placeOf({ target, elt }) {
    const part = target?.closest?.("#panel, #history, .workflow-card, dialog") ?? elt?.closest?.("dialog");
    return part?.checkVisibility() ? part : document.getElementById("main");
  }

  function words(detail) {
    const status = detail.xhr?.status;
    const why = status ? `the server answered ${status}` : "no answer from the server";
    if (!isRead(detail)) return `Not confirmed: ${why}. Check whether the change was saved before you repeat it.`;
    const shown = document.querySelector("#panel > header")?.dataset.stateName;
    const wanted = new URL(detail.pathInfo.finalRequestPath, location.href).searchParams.get("step");
    if (detail.target?.id !== "panel" || wanted === null || wanted === shown) return `Not loaded: ${why}.`;
    const still = shown ? `“${shown}”` : "the execution";
    return `${wanted ? `“${wanted}”` : "The execution"} was not loaded: ${why}. This is still ${still}.`;
  }

  function retryButton(detail, note) {
    const { etc = {}, target, elt, pathInfo } = detail;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button small";
    button.textContent = "Retry";
    button.addEventListener("click", () => {
      button.disabled = true;
      const context = { source: elt, target, swap: etc.swapOverride, select: etc.select };
      const forget = () => note.remove(); // after a failure there is a new one
      htmx.ajax("GET", pathInfo.finalRequestPath, context).then(forget, forget);
    });
    return button;
  }

  function showFailure({ detail }) {
    if (isPoll(detail) || detail.xhr?.status === 401) return;
    const place = placeOf(detail);
    place.querySelector(":scope > .failed-load")?.remove();
    const note = document.createElement("div");
    note.className = "banner failed failed-load";
    note.setAttribute("role", "alert");
    note.append(words(detail), " ");
    if (isRead(detail)) note.append(retryButton(detail, note));
    place.prepend(note);
    if (isRead(detail) && place.id === "panel") place.classList.add("outdated");
  }

  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    document.addEventListener(name, showFailure);
  }
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (isPoll(detail) || !detail.successful) return;
    detail.target?.classList?.remove("outdated");
    placeOf(detail).querySelector(":scope > .failed-load")?.remove();
  });
})();
