// The graph of the editor edits the text. The server makes every edit (one post with the whole text); this
// script shows its answer: the text goes into the editor as one step of its undo history.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const panel = () => document.getElementById("state-panel");
  const preview = () => document.getElementById("preview");
  const textarea = () => document.getElementById("text");
  let selected = ""; // the name of the state in the panel
  let marker = null;
  let refocus = ""; // what had the focus in a graph that was drawn anew

  const editor = () => {
    const holder = document.querySelector(".editor.tall");
    return holder && window.ace ? ace.edit(holder) : null;
  };
  const places = () => [...document.querySelectorAll("#state-list > li")].map((item) => item.dataset);
  const nameOf = (id) => places().find((place) => place.node === id)?.name ?? "";

  // -- asking the server ------------------------------------------------------------------------

  let asking = Promise.resolve();

  /** Ask for an edit; one after the other, each with the text that the one before left. */
  function ask(act, values = {}) {
    asking = asking.then(async () => {
      const scroll = { x: scrollX, y: scrollY };
      await htmx.ajax("POST", panel().dataset.edit, {
        source: panel(),
        target: panel(),
        swap: "innerHTML",
        values: { text: textarea().value, act, state: selected, ...values },
      });
      takeAnswer(act);
      if (matchMedia("(min-width: 1100px)").matches) scrollTo(scroll.x, scroll.y);
    });
    return asking;
  }

  function takeAnswer(act) {
    const text = panel().querySelector("template[data-new-text]")?.content.textContent;
    if (text !== undefined) replaceText(text);
    const message = panel().querySelector("template[data-message]")?.content.textContent;
    if (message) document.getElementById("announce").textContent = message;
    const refused = panel().querySelector('[role="alert"]');
    if (act !== "palette" && !refused) selected = panel().querySelector("[data-selected]")?.dataset.selected ?? "";
    const test = panel().querySelector("[data-test-state]");
    if (test && panel().dataset.test) {
      test.hidden = false;
      test.formAction = `${panel().dataset.test}?state=${encodeURIComponent(selected)}`;
    }
    markSelected(act !== "palette");
    document.getElementById("panel-title")?.focus({ preventScroll: matchMedia("(min-width: 1100px)").matches });
  }

  /** Replace the lines that differ, so that caret, folds and one step of undo are kept. */
  function replaceText(text) {
    const ace = editor();
    if (!ace) {
      textarea().value = text;
    } else {
      const doc = ace.session.doc;
      const old = doc.getValue();
      let start = 0;
      while (start < old.length && old[start] === text[start]) start += 1;
      let tail = 0;
      const most = Math.min(old.length, text.length) - start;
      while (tail < most && old[old.length - 1 - tail] === text[text.length - 1 - tail]) tail += 1;
      const Range = window.ace.require("ace/range").Range;
      const from = doc.indexToPosition(start);
      const to = doc.indexToPosition(old.length - tail);
      ace.session.markUndoGroup();
      ace.session.replace(Range.fromPoints(from, to), text.slice(start, text.length - tail));
      ace.session.markUndoGroup();
    }
    htmx.trigger(textarea(), "recheck");
  }

  // -- the graph --------------------------------------------------------------------------------

  /** Return what an edge's key says: the states it leads from and to, or the start of a block. */
  function edgeOf(path, seen) {
    const [source, target] = path.dataset.edge.split("-");
    if (path.classList.contains("out") && source === target) return null; // a branch to its foot
    const key = `${path.dataset.edge} ${path.classList.contains("in")}`;
    const occurrence = seen.get(key) ?? 0;
    seen.set(key, occurrence + 1);
    if (path.classList.contains("in")) return { owner: nameOf(source), index: occurrence };
    if (source === "start") return {};
    const isEnd = target === "end";
    return { source: nameOf(source), target: isEnd ? "" : nameOf(target), occurrence };
  }

  const ends = (id) => /, (Succeed|Fail)$/.test(preview().querySelector(`a[href="#state-${id}"]`)?.getAttribute("aria-label") ?? "");

  function labelOf(edge) {
    if (edge.owner) return `Insert a state at the start of ${edge.owner}, part ${edge.index + 1}`;
    if (!edge.source) return "Insert a state at the start";
    if (!edge.target) return `Insert a state after ${edge.source}`;
    const again = edge.occurrence ? `, edge ${edge.occurrence + 1}` : "";
    return `Insert a state between ${edge.source} and ${edge.target}${again}`;
  }

  function addPlus(svg, path, edge) {
    // the label of an edge stands in its middle
    const share = path.classList.contains("next") || path.classList.contains("out") || edge.owner ? 0.5 : 0.2;
    const { x, y } = path.getPointAtLength(path.getTotalLength() * share);
    const plus = document.createElementNS(SVG, "a");
    plus.setAttribute("class", "insert");
    plus.setAttribute("href", "#insert");
    plus.setAttribute("role", "button");
    plus.setAttribute("aria-label", labelOf(edge));
    plus.setAttribute("transform", `translate(${x} ${y})`);
    for (const [key, value] of Object.entries(edge)) plus.dataset[key] = value;
    const circle = document.createElementNS(SVG, "circle");
    circle.setAttribute("r", "9");
    const cross = document.createElementNS(SVG, "path");
    cross.setAttribute("d", "M-4 0H4M0-4V4");
    plus.append(circle, cross);
    svg.append(plus);
  }

  function decorate() {
    const svg = preview()?.querySelector("svg.flow");
    if (!svg) return;
    for (const old of svg.querySelectorAll(".insert")) old.remove();
    const seen = new Map();
    for (const path of svg.querySelectorAll("path[data-edge]")) {
      const edge = edgeOf(path, seen);
      const [source, target] = path.dataset.edge.split("-");
      if (edge && !(target === "end" && ends(source))) addPlus(svg, path, edge);
    }
    markSelected(false);
    if (refocus) preview().querySelector(refocus)?.focus({ preventScroll: true });
    refocus = "";
  }

  function markSelected(scroll) {
    const place = places().find((each) => each.name === selected);
    for (const node of preview().querySelectorAll('a[href^="#state-"]')) {
      if (place && node.getAttribute("href") === `#state-${place.node}`) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    }
    const ace = editor();
    if (!ace) return;
    if (marker !== null) ace.session.removeMarker(marker);
    marker = null;
    if (!place) return;
    const Range = window.ace.require("ace/range").Range;
    const [first, last] = [Number(place.first) - 1, Number(place.last) - 1];
    marker = ace.session.addMarker(new Range(first, 0, last, 1), "state-lines", "fullLine");
    if (scroll) ace.scrollToLine(first, false, true);
  }

  /** The state whose lines the caret stands in gets the mark of the graph. */
  function followCaret() {
    const ace = editor();
    if (!ace?.isFocused()) return;
    const row = ace.getCursorPosition().row + 1;
    const inside = places().filter((each) => Number(each.first) <= row && row <= Number(each.last));
    const innermost = inside.sort((one, other) => other.first - one.first)[0];
    for (const node of preview().querySelectorAll('a[href^="#state-"]')) {
      node.classList.toggle("at-caret", node.getAttribute("href") === `#state-${innermost?.node}`);
    }
  }

  // -- problems in the gutter -------------------------------------------------------------------

  function markProblems() {
    const annotations = [...document.querySelectorAll("#problems [data-line]")]
      .filter((problem) => Number(problem.dataset.line))
      .map((problem) => ({
        row: Number(problem.dataset.line) - 1,
        column: Number(problem.dataset.column) - 1,
        text: problem.textContent.replace(/\s+/g, " ").trim(),
        type: problem.classList.contains("failed") ? "error" : "warning",
      }));
    editor()?.session.setAnnotations(annotations);
  }

  document.addEventListener("htmx:afterSwap", () => markProblems());

  // -- what the reader presses ------------------------------------------------------------------

  const edgeValues = ({ source = "", target = "", occurrence = 0, owner = "", index = 0 }) => ({
    source,
    target,
    occurrence,
    owner,
    index,
  });

  function press(button) {
    const { act, piece } = button.dataset;
    if (act === "close") return ask("show", { state: "" });
    if (act === "palette") return ask(act, edgeValues(button.dataset));
    if (act === "insert") return ask(act, { piece, ...edgeValues(button.closest(".palette").dataset) });
    return ask(act);
  }

  document.addEventListener("click", (event) => {
    const node = event.target.closest('#preview a[href^="#state-"]');
    const plus = event.target.closest("#preview a.insert");
    const button = event.target.closest('#state-panel button[data-act][type="button"]');
    const history = event.target.closest("[data-history]")?.dataset.history;
    if (node || plus) event.preventDefault();
    if (node) ask("show", { state: nameOf(node.getAttribute("href").slice("#state-".length)) });
    else if (plus) ask("palette", edgeValues(plus.dataset));
    else if (button) press(button);
    else if (history) {
      editor()?.[history]();
      htmx.trigger(textarea(), "recheck");
    }
  });

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-state-form]")) return;
    event.preventDefault();
    ask("save", Object.fromEntries(new FormData(event.target)));
  });

  document.addEventListener("keydown", (event) => {
    if (!event.target.closest?.("#state-panel, #preview")) return;
    if (event.key === "Escape") ask("show", { state: "" });
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    if (event.target.matches("input, textarea")) return;
    event.preventDefault();
    event.shiftKey ? editor()?.redo() : editor()?.undo();
    htmx.trigger(textarea(), "recheck");
  });

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const focused = document.activeElement;
    if (event.detail.target?.id !== "preview" || !focused?.closest?.("#preview a")) return;
    const label = focused.getAttribute("aria-label");
    refocus = `a[aria-label="${CSS.escape(label)}"]`;
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target?.id === "preview") decorate();
  });
  document.addEventListener("DOMContentLoaded", () => {
    if (!panel()) return;
    editor()?.session.setUseWorker(false); // the server finds the problems, those of JSON too
    decorate();
    markProblems();
    editor()?.selection.on("changeCursor", followCaret);
  });
})();
