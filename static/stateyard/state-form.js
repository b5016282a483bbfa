// The form of a state in the editor: what the reader changed in it and has not applied yet. Only that is sent,
// so that a field which the text got meanwhile is not set back.
"use strict";
const stateForm = (() => {
  const form = () => document.querySelector("#state-panel [data-state-form]");

  // An input of one line drops line breaks; one of several writes them in one way.
  const plain = (input, text) => (input.tagName === "TEXTAREA" ? text.replace(/\r\n?/g, "\n") : text.replace(/[\r\n]/g, ""));

  function isChanged(input) {
    if (!input.name) return false;
    if (input.type === "checkbox") return input.checked !== input.defaultChecked;
    if (input.tagName !== "SELECT") return plain(input, input.value) !== plain(input, input.defaultValue);
    const shown = [...input.options].find((option) => option.defaultSelected) ?? input.options[0];
    return input.value !== shown?.value;
  }

  /** Return name -> value of the inputs that were changed and are not applied. */
  function changes() {
    const inputs = [...(form()?.elements ?? [])].filter(isChanged);
    return Object.fromEntries(inputs.map((input) => [input.name, input.type === "checkbox" ? "on" : input.value]));
  }

  const hasChanges = () => Object.keys(changes()).length > 0;

  /** Write values into a form that was made anew, since the edit with them was refused. */
  function fill(values) {
    for (const [name, value] of Object.entries(values)) {
      const input = form()?.elements[name];
      if (!input) continue;
      if (input.type === "checkbox") input.checked = true;
      else input.value = value;
      const more = input.closest("details");
      if (more) more.open = true;
    }
    showChanged();
  }

  /** Offer to take changes back only if there are some. */
  function showChanged() {
    const reset = form()?.querySelector("[type=reset]");
    if (reset) reset.hidden = !hasChanges();
  }

  document.addEventListener("input", (event) => {
    if (event.target.closest?.("[data-state-form]")) showChanged();
  });
  document.addEventListener("reset", (event) => {
    if (event.target.matches("[data-state-form]")) setTimeout(showChanged, 0);
  });
  // What is not applied is not in the draft, either.
  addEventListener("beforeunload", (event) => {
    if (hasChanges()) event.preventDefault();
  });

  return { changes, hasChanges, fill };
})();
