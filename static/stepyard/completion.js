// Ctrl+Space in the definition: fields, states, functions, errors, paths. The page has the words in lists.
"use strict";
(() => {
  const words = (id) => [...document.querySelectorAll(`#${id} > option`)].map((option) => option.value);
  const states = () => [...document.querySelectorAll("#state-list > li")].map((item) => item.dataset.name);

  /** Return [words, what they are] for the place of the caret: a key, or the value of a field. */
  function wordsAt(before) {
    const field = /"([^"]*)"\s*:\s*"?[^",]*$/.exec(before)?.[1];
    if (!field) return before.includes(":") || /\[\s*"?[^"]*$/.test(before) ? [everything(), ""] : [words("suggest-fields"), "field"];
    if (["Next", "Default", "StartAt"].includes(field)) return [states(), "state"];
    if (field === "Type") return [words("suggest-types"), "type"];
    if (field === "Resource") return [words("suggest-resources"), "resource"];
    if (field === "FunctionName") return [words("suggest-FunctionName"), "function"];
    if (field === "StateMachineArn") return [words("suggest-StateMachineArn"), "state machine"];
    if (field === "ErrorEquals") return [words("suggest-errors"), "error"];
    return [words("suggest-paths"), "data"];
  }

  const everything = () => [...words("suggest-errors"), ...states(), ...words("suggest-paths")];

  const completer = {
    identifierRegexps: [/[\w.$:@ -]/],
    getCompletions(editor, session, position, prefix, callback) {
      const before = session.getLine(position.row).slice(0, position.column);
      const quoted = (before.match(/"/g) ?? []).length % 2 === 1;
      const [found, meta] = wordsAt(before);
      callback(
        null,
        found.map((word) => ({ caption: word, value: quoted ? word : `"${word}"`, meta, score: 1 })),
      );
    },
  };

  document.addEventListener("DOMContentLoaded", () => {
    const holder = document.querySelector(".editor.tall");
    if (!holder || !window.ace || !document.getElementById("suggest-fields")) return;
    ace.require("ace/ext/language_tools");
    ace.edit(holder).setOptions({ enableBasicAutocompletion: [completer] });
  });
})();
