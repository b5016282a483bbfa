// The JSON editor (Ace) under a strict content security policy, its checks, and the list of problems.
// Without scripts the plain textarea does the same work.
"use strict";
(() => {
  const root = document.documentElement;
  const worker = document.currentScript.dataset.worker;
  const editors = new Map();

  const dark = () =>
    root.dataset.theme === "dark" ||
    (root.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const theme = () => `ace/theme/${dark() ? "github_dark" : "github_light_default"}`;

  function configure() {
    ace.config.set("useStrictCSP", true);
    ace.config.set("loadWorkerFromBlob", false);
    ace.config.setModuleUrl("ace/mode/json_worker", worker);
    ace.config.set("basePath", worker.slice(0, worker.lastIndexOf("/")));
  }

  function start(textarea) {
    const holder = document.createElement("div");
    holder.className = `editor ${textarea.dataset.editor}`;
    textarea.after(holder);
    textarea.hidden = true;
    const editor = ace.edit(holder, {
      mode: "ace/mode/json",
      theme: theme(),
      fontSize: 13,
      tabSize: 2,
      useSoftTabs: true,
      showPrintMargin: false,
      enableKeyboardAccessibility: true,
      wrap: textarea.dataset.editor === "short",
      scrollPastEnd: 0.2,
    });
    editor.session.setValue(textarea.dataset.editor === "short" ? readable(textarea.value) : textarea.value);
    editor.session.on("change", () => {
      textarea.value = editor.getValue();
      noteRevision();
      textarea.dispatchEvent(new Event("input", { bubbles: true }));
    });
    editor.on("paste", (pasted) => {
      const whole = editor.getSelectedText().trim() === editor.getValue().trim();
      if (whole) pasted.text = readable(pasted.text);
    });
    const label = document.querySelector(`label[for="${textarea.id}"]`);
    editor.textInput.getElement().setAttribute("aria-label", label?.textContent.trim() ?? "JSON");
    label?.addEventListener("click", () => editor.focus());
    // Send the text of the editor, even if another script changed the hidden textarea.
    textarea.form?.addEventListener("formdata", (event) => {
      if (event.formData.has(textarea.name)) event.formData.set(textarea.name, editor.getValue());
    });
    editors.set(textarea.id, editor);
  }

  // -- Back -------------------------------------------------------------------------------------

  // When the reader goes back to this page, the browser may load it again:
  //   1. DOMContentLoaded: the editor starts with the stored text.
  //   2. The browser writes the text typed before into the textarea; the editor does not see it.
  //   3. pageshow: restore() copies the text from the textarea into the editor.
  // A page from the back/forward cache (persisted) was never unloaded: editor and textarea agree.
  addEventListener("pageshow", (event) => {
    if (event.persisted) return;
    for (const textarea of document.querySelectorAll("textarea[data-editor]")) {
      if (textarea.value !== textarea.defaultValue) restore(textarea);
    }
  });

  // Restored text belongs to the revision that its page had, not to the server's current one. The
  // browser's history entry keeps that revision, so that saving detects the conflict.
  const revision = () => document.getElementById("revision");

  function noteRevision() {
    const field = revision();
    if (!field || history.state?.revision) return;
    history.replaceState({ ...history.state, revision: field.value }, "");
  }

  addEventListener("pageshow", (event) => {
    const field = revision();
    if (event.persisted || !field) return;
    const { revision: made, ...rest } = history.state ?? {};
    const text = document.getElementById("text");
    field.dataset.stored = field.value;
    if (made && text.value !== text.defaultValue) field.value = made;
    else if (made) history.replaceState(rest, "");
  });

  // A draft that the server kept is shown unless the browser itself brought a text back. It has the
  // revision that it was made from, so that saving detects a conflict.
  addEventListener("pageshow", (event) => {
    const draft = document.getElementById("draft");
    const textarea = document.getElementById("text");
    if (event.persisted || !draft || textarea.value !== textarea.defaultValue) return;
    const field = revision();
    if (field) field.value = draft.dataset.revision;
    textarea.value = draft.content.textContent;
    restore(textarea);
  });

  function forgetRevision() {
    const field = revision();
    if (!field) return;
    const { revision: _, ...rest } = history.state ?? {};
    history.replaceState(rest, "");
    field.value = field.dataset.stored;
  }

  /** Show the text that the browser restored, check it, and show the note that it is not saved. */
  function restore(textarea) {
    const doc = editors.get(textarea.id)?.session.doc;
    if (doc && doc.getValue() !== textarea.value) doc.setValue(textarea.value);
    if (textarea.hasAttribute("hx-post")) htmx.trigger(textarea, "recheck");
    const notice = document.querySelector(`[data-restored-text="${textarea.id}"]`);
    if (notice) notice.hidden = false;
  }

  /** Put a field's text of the linked page into this page; what else was typed stays. */
  async function fillFrom(link) {
    const answer = await fetch(link.href).catch(() => null);
    const other = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    const source = other?.getElementById(link.dataset.fill);
    if (!source) {
      location.assign(link.href);
      return;
    }
    const textarea = document.getElementById(link.dataset.fill);
    const text = findSyntaxError(source.value) ? source.value : indent(source.value);
    const editor = editors.get(textarea.id);
    if (editor) editor.session.doc.setValue(text);
    else textarea.value = text;
    for (const part of other.querySelectorAll("[data-filled]")) document.getElementById(part.id)?.replaceWith(part);
    document.querySelector(".last-input")?.remove();
    editor?.focus();
  }

  function discard(id) {
    const textarea = document.getElementById(id);
    const editor = editors.get(id);
    forgetRevision();
    if (editor) editor.session.doc.setValue(textarea.defaultValue);
    else textarea.value = textarea.defaultValue;
    htmx.trigger(textarea, "recheck");
    document.querySelector(`[data-restored-text="${id}"]`).hidden = true;
  }

  // -- problems ---------------------------------------------------------------------------------

  function goTo(line, column) {
    const editor = editors.get("text");
    if (editor) {
      editor.gotoLine(line, column - 1, true);
      editor.focus();
      return;
    }
    const textarea = document.getElementById("text");
    const before = textarea.value.split("\n").slice(0, line - 1).join("\n").length;
    const at = before + (line > 1 ? 1 : 0) + column - 1;
    textarea.focus();
    textarea.setSelectionRange(at, at);
  }

  document.addEventListener("click", (event) => {
    const problem = event.target.closest("[data-line]");
    if (problem && Number(problem.dataset.line)) {
      goTo(Number(problem.dataset.line), Number(problem.dataset.column));
    }
    const format = event.target.closest("[data-format]");
    if (format) reformat(format.dataset.format);
    const discarded = event.target.closest("[data-discard]");
    if (discarded) discard(discarded.dataset.discard);
    const fill = event.target.closest("a[data-fill]");
    if (fill && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      fillFrom(fill);
    }
  });

  // A form with a choice fills as a link does; without this script its button opens the page.
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-fill]");
    if (!form) return;
    event.preventDefault();
    const asked = new URLSearchParams(new FormData(form));
    fillFrom({ href: `${form.getAttribute("action")}?${asked}`, dataset: form.dataset });
  });

  // -- JSON -------------------------------------------------------------------------------------

  const TOKEN =
    /\s*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)\b))/y;

  /** Return the first syntax error of a JSON text with its line and column, or null. JSON.parse reports no place. */
  function findSyntaxError(text) {
    const open = [];
    let expected = "a value";
    TOKEN.lastIndex = 0;
    for (let end = 0; ; end = TOKEN.lastIndex) {
      const rest = text.slice(end);
      if (!rest.trim()) return expected === "the end" ? null : errorAt(text, text.length, expected);
      const at = end + rest.search(/\S/);
      const found = TOKEN.exec(text);
      if (!found) return errorAt(text, at, expected);
      const sign = found[1] ?? (found[2] ? "text" : "other");
      const next = nextExpected(sign, expected, open);
      if (!next) return errorAt(text, at, expected);
      expected = next;
    }
  }

  /** Return what the grammar expects after a token, or "" if the token was not expected. */
  function nextExpected(sign, expected, open) {
    const closes = { "}": "{", "]": "[" }[sign];
    const after = () => (open.length ? "a comma or the closing bracket" : "the end");
    if (closes) {
      const empty = expected === "a key or }" || expected === "a value or ]";
      if (open.at(-1) !== closes || !(empty || expected.startsWith("a comma"))) return "";
      open.pop();
      return after();
    }
    if (sign === ",") {
      if (!expected.startsWith("a comma")) return "";
      return open.at(-1) === "{" ? "a key" : "a value";
    }
    if (sign === ":") return expected === "a colon" ? "a value" : "";
    if (expected.startsWith("a key")) return sign === "text" ? "a colon" : "";
    if (!expected.startsWith("a value")) return "";
    if (sign !== "{" && sign !== "[") return after();
    open.push(sign);
    return sign === "{" ? "a key or }" : "a value or ]";
  }

  function errorAt(text, at, expected) {
    const before = text.slice(0, at);
    const line = before.split("\n").length;
    const column = before.length - before.lastIndexOf("\n");
    return { line, column, text: `This is not JSON: expected ${expected} at line ${line}, column ${column}.` };
  }

  function value(id) {
    return editors.get(id)?.getValue() ?? document.getElementById(id).value;
  }

  function reformat(id) {
    const text = value(id);
    if (findSyntaxError(text)) return;
    // Change white space only: parsing would alter long numbers and drop duplicate keys.
    const pretty = indent(text);
    const editor = editors.get(id);
    if (editor) editor.session.doc.setValue(pretty);
    else document.getElementById(id).value = pretty;
  }

  const LONG_LINE = 60; // characters; a shorter text is read in one line

  /** Return a JSON text in lines, if it stands in one long line. White space alone changes. */
  function readable(text) {
    const oneLine = text.trim().length > LONG_LINE && !text.trim().includes("\n");
    return oneLine && !findSyntaxError(text) ? indent(text) : text;
  }

  function indent(text) {
    let depth = 0;
    const line = () => `\n${"  ".repeat(depth)}`;
    return text
      .match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)
      .map((token, index, all) => {
        const next = all[index + 1];
        if (token === "{" || token === "[") {
          depth += 1;
          return next === "}" || next === "]" ? token : token + line();
        }
        if (token === "}" || token === "]") {
          depth -= 1;
          const empty = all[index - 1] === "{" || all[index - 1] === "[";
          return empty ? token : line() + token;
        }
        if (token === ",") return token + line();
        return token === ":" ? ": " : token;
      })
      .join("");
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-json-form]") || event.submitter?.matches("[data-unchecked]")) return;
    const syntaxError = findSyntaxError(value("input") || "{}");
    const message = event.target.querySelector("[data-input-error]");
    message.textContent = syntaxError?.text ?? "";
    document.getElementById("input").setAttribute("aria-invalid", String(Boolean(syntaxError)));
    if (!syntaxError) return;
    event.preventDefault();
    const editor = editors.get("input");
    if (editor) {
      editor.gotoLine(syntaxError.line, syntaxError.column - 1, true);
      editor.focus();
    } else {
      document.getElementById("input").focus();
    }
  });

  // -- upload -----------------------------------------------------------------------------------

  document.addEventListener("change", async (event) => {
    const id = event.target.dataset?.upload;
    const file = id && event.target.files[0];
    if (!file) return;
    replaceText(id, await file.text());
    event.target.value = ""; // the same file may be chosen again
  });

  /** Put another text into an editor, in lines, as one step of its undo history. */
  function replaceText(id, text) {
    const lines = readable(text.replaceAll("\r\n", "\n"));
    const editor = editors.get(id);
    if (editor) editor.session.doc.setValue(lines);
    else document.getElementById(id).value = lines;
    htmx.trigger(document.getElementById(id), "recheck");
  }

  document.addEventListener("begin-with", ({ detail }) => replaceText("text", detail));

  // -- saving, leaving --------------------------------------------------------------------------

  document.addEventListener("keydown", (event) => {
    const save = document.querySelector("[data-save]");
    if (save && (event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      save.click();
    }
  });
  document.addEventListener("theme", () => {
    for (const editor of editors.values()) editor.setTheme(theme());
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const editor of editors.values()) editor.setTheme(theme());
  });
  document.addEventListener("DOMContentLoaded", () => {
    if (!window.ace) return;
    configure();
    for (const textarea of document.querySelectorAll("textarea[data-editor]")) start(textarea);
  });
})();
