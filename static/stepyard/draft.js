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
    if (textarea.value === textarea.defaultValue && !unsaved()) data.set("discard", "1");
    else data.set("text", textarea.value);
    return data;
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
    addEventListener("pageshow", () => {
      submitting = false;
    });
    addEventListener("beforeunload", (event) => {
      if (submitting || textarea.value === kept) return;
      if (!failed && navigator.sendBeacon(form.dataset.draft, fields())) return;
      event.preventDefault();
    });
  });
})();
