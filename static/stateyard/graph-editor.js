// The graph of the editor edits the text. The server makes every edit (one post with the whole text); this
// script shows its answer: the text goes into the editor as one step of its undo history.
"use strict";
(() => {
  const panel = () => document.getElementById("state-panel");
  const preview = () => document.getElementById("preview");
  const textarea = () => document.getElementById("text");
  let selected = ""; // the name of the state in the panel
  let marker = null;
  let owed = ""; // a state that was made a moment ago: its lines are shown when they are known
  let refocus = ""; // what had the focus in a graph that was drawn anew

  const editor = () => {
    const holder = document.querySelector(".editor.tall");
    return holder && window.ace ? ace.edit(holder) : null;
  };
  let places = []; // what the page says of each state: node ("" if it is folded away), name, block, lines
  let drawn = new Map(); // node -> the same
  const nameOf = (id) => drawn.get(id)?.name ?? "";

  function readPlaces() {
    places = [...document.querySelectorAll("#state-list > li")].map((item) => ({ ...item.dataset }));
    drawn = new Map(places.filter((place) => place.node).map((place) => [place.node, place]));
  }

  // -- asking the server ------------------------------------------------------------------------

  let asking = Promise.resolve();
  let panelText = null; // the text that the panel was made from
  let refreshing = false;

  const NAMES = ["state", "source", "target", "owner", "leads_to"];

  /** Ask for an edit; one after the other, each with the text that the one before left. */
  function ask(act, values = {}, focus = true) {
    asking = asking.then(async () => {
      const before = selected;
      if (!(await applyForm())) return;
      // the form may have given the state another name
      const names = Object.entries(values).map(([key, value]) => [key, NAMES.includes(key) && value === before ? selected : value]);
      await send(act, Object.fromEntries(names), focus);
    });
    return asking;
  }

  async function send(act, values, focus) {
    const scroll = { x: scrollX, y: scrollY };
    const opener = act === "show" || act === "palette" ? document.activeElement : null;
    await htmx.ajax("POST", panel().dataset.edit, {
      source: panel(),
      target: panel(),
      swap: "innerHTML",
      values: { text: textarea().value, act, state: selected, ...values },
    });
    takeAnswer(act, focus, opener);
    if (matchMedia("(min-width: 1100px)").matches) scrollTo(scroll.x, scroll.y);
  }

  const refusal = () => panel().querySelector('[role="alert"]');

  /** Apply what was typed into the form. Return false if it was refused: the form has it still, and the reason. */
  async function applyForm() {
    const values = stateForm.changes();
    if (!Object.keys(values).length) return true;
    const form = [...panel().children].filter((part) => !part.matches("template, [role=alert]"));
    await send("save", values, false);
    if (!refusal()) return true;
    if (panel().querySelector("[data-state-form]")) stateForm.fill(values);
    else panel().append(...form); // the text is no JSON at present
    refusal().focus();
    return false;
  }

  /** Show the form as the text is now, if something else changed the text and nothing is typed into the form. */
  function refreshForm() {
    const form = panel().querySelector("[data-state-form]");
    const broken = document.getElementById("problems").dataset.broken === "true";
    if (!form || broken || textarea().value === panelText || stateForm.hasChanges()) return;
    const gone = !places.some((place) => place.name === selected);
    asking = asking.then(async () => {
      if (stateForm.hasChanges() || textarea().value === panelText) return;
      const focused = panel().contains(document.activeElement) ? document.activeElement : null;
      refreshing = true;
      await send("show", gone ? { state: "" } : {}, false);
      refreshing = false;
      if (!focused || panel().contains(document.activeElement)) return;
      const again = focused.id && panel().querySelector(`#${CSS.escape(focused.id)}`);
      if (again) again.focus({ preventScroll: true });
      else focusTitle();
    });
  }

  // The reader began to type while the answer was on its way.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (refreshing && event.detail.target === panel() && stateForm.hasChanges()) event.detail.shouldSwap = false;
  });

  let pressed = ""; // what opened the panel: it gets the focus back

  function takeAnswer(act, focus, opener) {
    const link = opener?.closest?.("#preview a");
    if (link) pressed = link.getAttribute("aria-label");
    const text = panel().querySelector("template[data-new-text]")?.content.textContent;
    if (text !== undefined) {
      document.getElementById("chosen").value = panel().querySelector("[data-selected]")?.dataset.selected ?? "";
      replaceText(text);
    }
    const message = panel().querySelector("template[data-message]")?.content.textContent;
    if (message) document.getElementById("announce").textContent = message;
    panelText = textarea().value;
    if (!refusal()) selected = panel().querySelector("[data-selected]")?.dataset.selected ?? "";
    const test = panel().querySelector("[data-test-state]");
    if (test && panel().dataset.test) {
      test.hidden = false;
      test.formAction = `${panel().dataset.test}?state=${encodeURIComponent(selected)}`;
    }
    markSelected(act !== "palette");
    if (focus) focusTitle();
  }

  function focusTitle() {
    const title = document.getElementById("panel-title");
    panel().scrollTop = 0; // a new form begins at its top, wherever the one before was scrolled to
    const opened = title ?? preview().querySelector(`a[aria-label="${CSS.escape(pressed)}"]`);
    (opened ?? room())?.focus({ preventScroll: matchMedia("(min-width: 1100px)").matches });
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

  function decorate() {
    const svg = preview()?.querySelector("svg.flow");
    readPlaces();
    if (!svg) return;
    edgeButtons.put(svg, drawn);
    markSelected(false);
    if (refocus) preview().querySelector(refocus)?.focus({ preventScroll: true });
    refocus = "";
  }

  function markSelected(scroll) {
    const place = places.find((each) => each.name === selected);
    for (const node of preview().querySelectorAll('a[href^="#state-"]')) {
      if (place && node.getAttribute("href") === `#state-${place.node}`) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    }
    markEdge();
    const ace = editor();
    if (!ace) return;
    if (marker !== null) ace.session.removeMarker(marker);
    marker = null;
    if (scroll) owed = place ? "" : selected;
    if (!place) return;
    const Range = window.ace.require("ace/range").Range;
    const [first, last] = [Number(place.first) - 1, Number(place.last) - 1];
    marker = ace.session.addMarker(new Range(first, 0, last, 1), "state-lines", "fullLine");
    if (scroll || owed === selected) ace.scrollToLine(first, false, true);
    owed = "";
  }

  /** Mark the + of the edge that the panel is about. */
  function markEdge() {
    const edge = panel().querySelector(".palette")?.dataset;
    for (const plus of preview().querySelectorAll("a.insert")) {
      const values = Object.entries(edgeValues(plus.dataset));
      if (edge && values.every(([key, value]) => edge[key] === String(value))) plus.setAttribute("aria-current", "true");
      else plus.removeAttribute("aria-current");
    }
  }

  /** Draw the graph in another direction, without leaving the page: the text may not be saved yet. */
  async function turnGraph(form, button) {
    const values = { [button.name]: button.value };
    await htmx.ajax("POST", form.action, { source: form, swap: "none", values });
    htmx.trigger(textarea(), "recheck");
    turned = true;
  }

  // -- groups of a large machine ------------------------------------------------------------------

  const nodeOfSign = (sign) => sign.previousElementSibling.getAttribute("href").slice("#state-".length);

  function toggleFold(sign) {
    const field = document.getElementById("opened");
    const name = nameOf(nodeOfSign(sign));
    pinned = name;
    const opened = JSON.parse(field.value || "[]");
    field.value = JSON.stringify(opened.includes(name) ? opened.filter((other) => other !== name) : [...opened, name]);
    htmx.trigger(textarea(), "recheck");
  }

  // -- a graph that is drawn anew stays where it was ----------------------------------------------

  const room = () => preview().querySelector("[data-graph]");
  const linkOf = (name) => {
    const place = places.find((each) => each.name === name && each.node);
    return place && preview().querySelector(`a.node[href="#state-${place.node}"]`);
  };
  const offsetOf = (link) => {
    const [box, frame] = [link.querySelector(".box").getBoundingClientRect(), room().getBoundingClientRect()];
    return { x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height };
  };

  let pinned = ""; // the group that was folded or unfolded by the last press

  /** Return a state that must not move: the selected one if it is in sight, else the one next to the middle. */
  function anchor() {
    const graph = room();
    if (!graph) return null;
    const scroll = { left: graph.scrollLeft, top: graph.scrollTop };
    const [width, height] = [graph.clientWidth, graph.clientHeight];
    const toggled = pinned;
    const name = toggled || selected;
    pinned = "";
    const own = linkOf(name);
    const at = own && offsetOf(own);
    if (at && at.x < width && at.y < height && at.x + at.width > 0 && at.y + at.height > 0) return { name, at, scroll, toggled };
    let best = null;
    for (const link of graph.querySelectorAll("a.node")) {
      const offset = offsetOf(link);
      const far = Math.hypot(offset.x + offset.width / 2 - width / 2, offset.y + offset.height / 2 - height / 2);
      if (!best || far < best.far) best = { far, at: offset, name: nameOf(link.getAttribute("href").slice("#state-".length)), scroll };
    }
    return best;
  }

  function holdStill(kept) {
    const graph = room();
    if (!graph || !kept) return;
    const link = linkOf(kept.name);
    const now = link && offsetOf(link);
    if (now) graph.scrollBy(now.x - kept.at.x, now.y - kept.at.y);
    else graph.scrollTo(kept.scroll);
    if (now && kept.toggled) showBox(graph, offsetOf(link)); // an unfolded group is shown whole
    const fresh = linkOf(document.getElementById("chosen").value);
    if (fresh) showBox(graph, offsetOf(fresh));
  }

  /** Move the graph to its start: the text is that of another machine. */
  function showStart() {
    const start = room()?.querySelector("[data-start]");
    if (!start) return;
    const [box, frame] = [start.getBoundingClientRect(), room().getBoundingClientRect()];
    room().scrollBy(box.left + box.width / 2 - frame.left - frame.width / 2, box.top + box.height / 2 - frame.top - frame.height / 2);
  }

  /** Open a state that the address names, and move the graph to it. */
  async function openState(name) {
    await ask("show", { state: name });
    const link = linkOf(name);
    if (link) showBox(room(), offsetOf(link));
  }

  /** Move the graph as little as needed to show a box, the head of one that is too large. */
  function showBox(graph, { x, y, width, height }) {
    const by = (start, size, frame) => {
      if (start >= 0 && start + size <= frame) return 0;
      return size > frame || start < 0 ? start - 24 : start + size - frame + 24;
    };
    graph.scrollBy(by(x, width, graph.clientWidth), by(y, height, graph.clientHeight));
  }

  /** The state whose lines the caret stands in gets the mark of the graph. */
  function followCaret() {
    const ace = editor();
    if (!ace?.isFocused()) return;
    const row = ace.getCursorPosition().row + 1;
    const inside = places.filter((each) => each.node && Number(each.first) <= row && row <= Number(each.last));
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

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "problems") return;
    markProblems();
    preview().classList.toggle("older", event.target.dataset.broken === "true");
    // the graph may be the one there was, but its states stand in other lines
    readPlaces();
    markSelected(false);
    // what was said of another text
    if (textarea().value !== panelText && !panel().querySelector("[data-state-form]")) refusal()?.remove();
    refreshForm();
    document.getElementById("opened").value = document.getElementById("state-list").dataset.opened;
    document.getElementById("chosen").value = "";
  });

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
    const sign = event.target.closest("#preview a.fold-sign");
    const plus = event.target.closest("#preview a.insert");
    const button = event.target.closest('#state-panel button[data-act][type="button"]');
    const history = event.target.closest("[data-history]")?.dataset.history;
    const convert = event.target.closest("button[name=convert]");
    if (node || plus || sign || convert) event.preventDefault();
    if (sign) toggleFold(sign);
    else if (node) ask("show", { state: nameOf(node.getAttribute("href").slice("#state-".length)) });
    else if (plus) ask("palette", edgeValues(plus.dataset));
    else if (button) press(button);
    else if (convert) ask("convert", { piece: convert.value });
    else if (history) goThroughHistory(history);
  });

  /** Show the pieces of the palette that have every typed word. */
  function filterPieces(text) {
    const words = text.toLowerCase().split(/\s+/);
    for (const list of panel().querySelectorAll("[data-pieces]")) {
      for (const item of list.children) item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
      const none = [...list.children].every((item) => item.hidden);
      list.hidden = list.previousElementSibling.hidden = none;
    }
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-find-piece]")) filterPieces(event.target.value);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches?.("[data-find-piece]")) return;
    event.preventDefault();
    panel().querySelector("[data-pieces] li:not([hidden]) button")?.click();
  });

  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-reconnect]")) {
      event.preventDefault();
      const leadsTo = event.target.elements.leads_to.value;
      ask("reconnect", { ...edgeValues(event.target.closest(".palette").dataset), leads_to: leadsTo });
    }
    if (event.target.matches(".direction")) {
      event.preventDefault();
      turnGraph(event.target, event.submitter);
    }
    if (!event.target.matches("[data-state-form]")) return;
    event.preventDefault();
    if (stateForm.hasChanges()) asking = asking.then(async () => (await applyForm()) && focusTitle());
    else document.getElementById("announce").textContent = "Nothing was changed.";
  });

  // What is saved, tested or started has what was typed into the form of a state.
  document.addEventListener(
    "submit",
    (event) => {
      if (event.target.id !== "definition-form" || !stateForm.hasChanges()) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      const { target, submitter } = event;
      asking = asking.then(async () => (await applyForm()) && target.requestSubmit(submitter));
    },
    { capture: true },
  );

  // The changes that are shown have what was typed into the form of a state, too.
  document.addEventListener("htmx:confirm", (event) => {
    if (!event.target.matches?.('[hx-target="#changes"]') || !stateForm.hasChanges()) return;
    event.preventDefault();
    const shown = document.getElementById("changes");
    shown.textContent = "";
    asking = asking.then(async () => {
      if (await applyForm()) return event.detail.issueRequest(true);
      shown.textContent = "The form of the state has a change that cannot be applied. Correct it first.";
    });
  });

  async function goThroughHistory(way) {
    await (asking = asking.then(applyForm));
    editor()?.[way]();
    htmx.trigger(textarea(), "recheck");
  }

  /** Delete the state that has the focus in the graph, else that of the panel. Undo brings it back. */
  function deleteState(event) {
    if (event.repeat || event.target.closest("input, textarea, select, summary, button, a:not(.node)")) return;
    const node = event.target.closest("#preview a.node");
    const state = node ? nameOf(node.getAttribute("href").slice("#state-".length)) : panel().querySelector("[data-selected]")?.dataset.selected;
    if (!state) return;
    event.preventDefault();
    ask("delete", { state });
  }

  document.addEventListener("keydown", (event) => {
    if (!event.target.closest?.("#state-panel, #preview")) return;
    if (event.key === "Delete" || event.key === "Backspace") deleteState(event);
    if (event.key === "Escape") ask("show", { state: "" });
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    if (event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    goThroughHistory(event.shiftKey ? "redo" : "undo");
  });

  document.addEventListener("unfold-state", ({ detail }) => {
    document.getElementById("chosen").value = detail;
    htmx.trigger(textarea(), "recheck");
  });

  let kept = null;
  let turned = false; // the graph is drawn in another direction

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target?.id !== "preview") return;
    kept = anchor();
    const focused = document.activeElement?.closest?.("#preview a");
    if (!focused) return;
    const label = focused.getAttribute("aria-label");
    refocus = focused.matches(".fold-sign")
      ? `a[href="#state-${nodeOfSign(focused)}"] + .fold-sign`
      : `a[aria-label="${CSS.escape(label)}"]`;
  });
  // htmx tells of each swap once for every part of its answer: a graph is prepared for one of them only.
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target?.id !== "preview" || event.target.id !== "preview") return;
    document.dispatchEvent(new CustomEvent("redrawn")); // graph.js gives it the scale of the one before
    if (turned) document.dispatchEvent(new CustomEvent("turned"));
    turned = false;
    const before = new Set(places.map((place) => place.name));
    decorate();
    if (places.some((place) => before.has(place.name))) holdStill(kept);
    else showStart();
  });
  document.addEventListener("reconnect", ({ detail }) => ask("reconnect", detail, false));
  document.addEventListener("paste-states", ({ detail }) => ask("paste", detail));
  document.addEventListener("edge-menu", ({ detail }) => ask("palette", edgeValues(detail)));
  document.addEventListener("DOMContentLoaded", () => {
    if (!panel()) return;
    editor()?.session.setUseWorker(false); // the server finds the problems, those of JSON too
    decorate();
    markProblems();
    editor()?.selection.on("changeCursor", followCaret);
    if (panel().dataset.open) openState(panel().dataset.open);
  });
})();
