// The draft of the definition's editor: kept on the server a moment after each change, and at the latest
// when the reader leaves. Only a text that could not be kept makes the browser warn.
"use strict";
(() => {
  const PAUSE_MS = 800;
  let form;
  let textarea;
  let kept; // the text that the server has, as the definition or as the draft
  let timer = 0;
  let failed = false;
  let submitting = false;

  function fields() {
    const data = new FormData();
    data.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    data.set("revision", document.getElementById("revision")?.value ?? "");
    data.set("page", form.elements.page.value);
    if (textarea.value === textarea.defaultValue && !unsaved()) data.set("discard", "1");
    else data.set("text", textarea.value);
    return data;
  }

  // A draft that arrives after the text was saved from the same page is not kept any more.
  function namePage() {
    form.elements.page.value = [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("");
  }

  const unsaved = () => "unsaved" in form.dataset;

  function note(text) {
    document.getElementById("draft-note").textContent = text;
  }

  async function keep() {
    clearTimeout(timer);
    const text = textarea.value;
    if (text === kept || submitting) return;
    const body = fields();
    try {
      const answer = await fetch(form.dataset.draft, { method: "POST", body });
      if (!answer.ok) throw new Error(String(answer.status));
      kept = text;
      failed = false;
      note(body.has("discard") ? "" : "Draft kept");
    } catch {
      failed = true;
      note("Draft not kept: the server cannot be reached");
      timer = setTimeout(keep, 5 * PAUSE_MS);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    form = document.getElementById("definition-form");
    textarea = document.getElementById("text");
    if (!form?.dataset.draft) return;
    const draft = document.getElementById("draft");
    kept = draft ? draft.content.textContent : unsaved() ? null : textarea.defaultValue;
    namePage();
    if (unsaved()) keep();
    textarea.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(keep, PAUSE_MS);
    });
    document.addEventListener("click", (event) => {
      if (event.target.closest("[data-discard]")) setTimeout(keep, 0);
    });
    form.addEventListener("submit", () => {
      submitting = true;
      clearTimeout(timer);
    });
    addEventListener("pageshow", (event) => {
      submitting = false;
      if (event.persisted) namePage();
    });
    addEventListener("beforeunload", (event) => {
      if (submitting || textarea.value === kept) return;
      if (!failed && navigator.sendBeacon(form.dataset.draft, fields())) return;
      event.preventDefault();
    });
  });
})();
