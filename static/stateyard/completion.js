// Ctrl+Space in the definition: snippets, fields, states, functions, errors, paths. The page has the words in lists.
"use strict";
(() => {
  const words = (id) => [...document.querySelectorAll(`#${id} > option`)].map((option) => option.value);
  const states = () => [...document.querySelectorAll("#state-list > li")].map((item) => item.dataset.name);
  const everything = () => [...words("suggest-errors"), ...states(), ...words("suggest-paths")];

  // -- where the caret stands ---------------------------------------------------------------------

  /** Return the containers around the end of a JSON text, outermost first, and the key before the end, if any. */
  function containersAround(text) {
    const open = [];
    let [key, last] = ["", ""];
    for (const [token] of text.matchAll(/"(?:[^"\\\n]|\\.)*"|[{}[\]:,]/g)) {
      if (token === "{" || token === "[") {
        open.push({ kind: token, key });
        key = "";
      } else if (token === "}" || token === "]") {
        open.pop();
        key = "";
      } else if (token === ":") key = last;
      else if (token === ",") key = "";
      else last = token.slice(1, -1);
    }
    return { open, key };
  }

  /** Return which snippets fit at the end of a text: among states, fields of a state, rules; or "". */
  function snippetPlace(text) {
    const { open, key } = containersAround(text);
    const [inner, outer] = [open.at(-1), open.at(-2)];
    if (!inner || key) return "";
    if (inner.kind === "{" && inner.key === "States") return "states";
    if (inner.kind === "{" && outer?.key === "States" && outer.kind === "{") return "state";
    return inner.kind === "[" && inner.key === "Choices" ? "rules" : "";
  }

  /** Return [words, what they are] for the place of the caret: a key, or the value of a field. */
  function wordsAt(line, text) {
    const field = /"([^"]*)"\s*:\s*"?[^",]*$/.exec(line)?.[1];
    if (!field) return line.includes(":") || containersAround(text).open.at(-1)?.kind === "[" ? [everything(), ""] : [words("suggest-fields"), "field"];
    if (["Next", "Default", "StartAt"].includes(field)) return [states(), "state"];
    if (field === "Type") return [words("suggest-types"), "type"];
    if (field === "Resource") return [words("suggest-resources"), "resource"];
    if (field === "FunctionName") return [words("suggest-FunctionName"), "function"];
    if (field === "StateMachineArn") return [words("suggest-StateMachineArn"), "state machine"];
    if (field === "ErrorEquals") return [words("suggest-errors"), "error"];
    return [words("suggest-paths"), "data"];
  }

  // -- snippets -------------------------------------------------------------------------------------

  let known = null;

  function snippetsAt(place, text) {
    if (!place) return [];
    known ??= JSON.parse(document.getElementById("snippets")?.content.textContent ?? "[]");
    const language = /"QueryLanguage"\s*:\s*"JSONata"/.test(text) ? "JSONata" : "JSONPath";
    return known.filter((snippet) => snippet.place === place && snippet.language === language);
  }

  const isInString = (line) => (line.replace(/\\./g, "").match(/"/g) ?? []).length % 2 === 1;
  const lineBefore = (editor) => editor.session.getLine(editor.getCursorPosition().row).slice(0, editor.getCursorPosition().column);

  /** Put a snippet in the place of what was typed of its name, with the commas that it needs. */
  function insertSnippet(editor, text) {
    const { session } = editor;
    const doc = session.doc;
    const before = lineBefore(editor);
    const typed = isInString(before) ? before.slice(before.lastIndexOf('"')) : /[\w]*$/.exec(before)[0];
    const caret = doc.positionToIndex(editor.getCursorPosition());
    const after = doc.getValue().slice(caret);
    const closing = typed.startsWith('"') && after.startsWith('"') ? 1 : 0;
    const Range = ace.require("ace/range").Range;
    session.remove(Range.fromPoints(doc.indexToPosition(caret - typed.length), doc.indexToPosition(caret + closing)));
    const head = doc.getValue().slice(0, caret - typed.length);
    if (/[}\]"\w]$/.test(head.trimEnd())) session.insert(doc.indexToPosition(head.trimEnd().length), ",");
    const comma = /^\s*["{]/.test(after.slice(closing)) ? "," : "";
    ace.require("ace/snippets").snippetManager.insertSnippet(editor, text + comma);
  }

  const snippetCompleter = { insertMatch: (editor, match) => insertSnippet(editor, match.body) };

  const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const preview = (text) => text.replace(/\$\{\d+:([^}]*)\}/g, "$1").replace(/\\([\\$])/g, "$1").replace(/\$\d+/g, "…");

  // -- Ace ------------------------------------------------------------------------------------------

  const completer = {
    // a name of a state may have blanks, but what stands before a word outside of quotes is indentation
    get identifierRegexps() {
      const editor = ace.edit(document.querySelector(".editor.tall"));
      return [isInString(lineBefore(editor)) ? /[\w.$:@ -]/ : /\w/];
    },
    getCompletions(editor, session, position, prefix, callback) {
      const line = session.getLine(position.row).slice(0, position.column);
      const before = session.doc.getValue().slice(0, session.doc.positionToIndex(position));
      const quoted = isInString(line);
      const open = quoted ? before.slice(0, before.lastIndexOf('"')) : before;
      const [found, meta] = wordsAt(line, open);
      const snippets = snippetsAt(snippetPlace(open), session.doc.getValue());
      callback(null, [
        ...snippets.map(({ label, hint, text }) => ({
          caption: label,
          body: text,
          meta: hint,
          score: 2,
          docHTML: `<pre>${escaped(preview(text))}</pre>`,
          completer: snippetCompleter,
        })),
        ...found.map((word) => ({ caption: word, value: quoted ? word : `"${word}"`, meta, score: 1 })),
      ]);
    },
  };

  document.addEventListener("DOMContentLoaded", () => {
    const holder = document.querySelector(".editor.tall");
    if (!holder || !window.ace || !document.getElementById("suggest-fields")) return;
    ace.require("ace/ext/language_tools");
    ace.edit(holder).setOptions({ enableBasicAutocompletion: [completer] });
  });
})();
