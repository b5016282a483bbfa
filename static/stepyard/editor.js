// The JSON editor (Ace) under a strict content security policy, its checks, and the problems list.
// Without a script the textarea stays and does the same work.
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
    editor.session.setValue(textarea.value);
    editor.session.on("change", () => {
      textarea.value = editor.getValue();
      noteRevision();
      textarea.dispatchEvent(new Event("input", { bubbles: true }));
    });
    const label = document.querySelector(`label[for="${textarea.id}"]`);
    editor.textInput.getElement().setAttribute("aria-label", label?.textContent.trim() ?? "JSON");
    label?.addEventListener("click", () => editor.focus());
    // What is shown is what is sent, whoever wrote to the hidden textarea in between.
    textarea.form?.addEventListener("formdata", (event) => {
      if (event.formData.has(textarea.name)) event.formData.set(textarea.name, editor.getValue());
    });
    editors.set(textarea.id, editor);
  }

  // -- Back -------------------------------------------------------------------------------------

  // A browser that comes back to a page builds it anew and then, after DOMContentLoaded, writes
  // what was typed before into the textarea: the editor shows the stored text by then. A page from
  // the back/forward cache (persisted) was never torn down, so its editor and textarea agree.
  addEventListener("pageshow", (event) => {
    if (event.persisted) return;
    for (const textarea of document.querySelectorAll("textarea[data-editor]")) {
      if (textarea.value !== textarea.defaultValue) restore(textarea);
    }
  });

  // Kept text was made from the revision that its page had, not from the one that the server has
  // by now: the entry of the browser's history keeps it, so that saving tells when they differ.
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

  function forgetRevision() {
    const field = revision();
    if (!field) return;
    const { revision: _, ...rest } = history.state ?? {};
    history.replaceState(rest, "");
    field.value = field.dataset.stored;
  }

  /** Show the text that the browser kept, and let the page check it and tell that it is unsaved. */
  function restore(textarea) {
    const doc = editors.get(textarea.id)?.session.doc;
    if (doc && doc.getValue() !== textarea.value) doc.setValue(textarea.value);
    if (textarea.hasAttribute("hx-post")) htmx.trigger(textarea, "recheck");
    const told = document.querySelector(`[data-kept="${textarea.id}"]`);
    if (told) told.hidden = false;
  }

  function discard(id) {
    const textarea = document.getElementById(id);
    const editor = editors.get(id);
    forgetRevision();
    if (editor) editor.session.doc.setValue(textarea.defaultValue);
    else textarea.value = textarea.defaultValue;
    htmx.trigger(textarea, "recheck");
    document.querySelector(`[data-kept="${id}"]`).hidden = true;
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
    const unwanted = event.target.closest("[data-discard]");
    if (unwanted) discard(unwanted.dataset.discard);
  });

  // -- JSON -------------------------------------------------------------------------------------

  const TOKEN =
    /\s*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)\b))/y;

  /** Return what is wrong with a JSON text and where, or null; JSON.parse does not say where. */
  function fault(text) {
    const open = [];
    let wanted = "a value";
    TOKEN.lastIndex = 0;
    for (let end = 0; ; end = TOKEN.lastIndex) {
      const rest = text.slice(end);
      if (!rest.trim()) return wanted === "the end" ? null : place(text, text.length, wanted);
      const at = end + rest.search(/\S/);
      const found = TOKEN.exec(text);
      if (!found) return place(text, at, wanted);
      const sign = found[1] ?? (found[2] ? "text" : "other");
      const next = follow(sign, wanted, open);
      if (!next) return place(text, at, wanted);
      wanted = next;
    }
  }

  /** Return what is wanted after a token, or "" if it is not what was wanted. */
  function follow(sign, wanted, open) {
    const closes = { "}": "{", "]": "[" }[sign];
    const after = () => (open.length ? "a comma or the closing bracket" : "the end");
    if (closes) {
      const empty = wanted === "a key or }" || wanted === "a value or ]";
      if (open.at(-1) !== closes || !(empty || wanted.startsWith("a comma"))) return "";
      open.pop();
      return after();
    }
    if (sign === ",") {
      if (!wanted.startsWith("a comma")) return "";
      return open.at(-1) === "{" ? "a key" : "a value";
    }
    if (sign === ":") return wanted === "a colon" ? "a value" : "";
    if (wanted.startsWith("a key")) return sign === "text" ? "a colon" : "";
    if (!wanted.startsWith("a value")) return "";
    if (sign !== "{" && sign !== "[") return after();
    open.push(sign);
    return sign === "{" ? "a key or }" : "a value or ]";
  }

  function place(text, at, wanted) {
    const before = text.slice(0, at);
    const line = before.split("\n").length;
    const column = before.length - before.lastIndexOf("\n");
    return { line, column, text: `This is not JSON: wanted ${wanted} at line ${line}, column ${column}.` };
  }

  function value(id) {
    return editors.get(id)?.getValue() ?? document.getElementById(id).value;
  }

  function reformat(id) {
    const text = value(id);
    if (fault(text)) return;
    // Only white space changes: numbers and duplicate keys keep their text.
    const pretty = indent(text);
    const editor = editors.get(id);
    if (editor) editor.session.doc.setValue(pretty);
    else document.getElementById(id).value = pretty;
  }

  function indent(text) {
    let depth = 0;
    const line = () => `\n${"  ".repeat(depth)}`;
    return text
      .match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)
      .map((token, place, all) => {
        const next = all[place + 1];
        if (token === "{" || token === "[") {
          depth += 1;
          return next === "}" || next === "]" ? token : token + line();
        }
        if (token === "}" || token === "]") {
          depth -= 1;
          const empty = all[place - 1] === "{" || all[place - 1] === "[";
          return empty ? token : line() + token;
        }
        if (token === ",") return token + line();
        return token === ":" ? ": " : token;
      })
      .join("");
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-json-form]")) return;
    const wrong = fault(value("input") || "{}");
    const message = event.target.querySelector("[data-input-error]");
    message.textContent = wrong?.text ?? "";
    document.getElementById("input").toggleAttribute("aria-invalid", Boolean(wrong));
    if (!wrong) return;
    event.preventDefault();
    const editor = editors.get("input");
    if (editor) {
      editor.gotoLine(wrong.line, wrong.column - 1, true);
      editor.focus();
    } else {
      document.getElementById("input").focus();
    }
  });

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
