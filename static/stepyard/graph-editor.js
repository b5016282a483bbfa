// The graph of the editor edits the text. The server makes every edit (one post with the whole text); this
// script shows its answer: the text goes into the editor as one step of its undo history.
"use strict";
(() => {
  const GRIP_GAP = 16; // pixels
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
  let places = []; // what the page says of each state: node ("" if it is folded away), name, block, lines
  let drawn = new Map(); // node -> the same
  const nameOf = (id) => drawn.get(id)?.name ?? "";

  function readPlaces() {
    places = [...document.querySelectorAll("#state-list > li")].map((item) => ({ ...item.dataset }));
    drawn = new Map(places.filter((place) => place.node).map((place) => [place.node, place]));
  }

  // -- asking the server ------------------------------------------------------------------------

  let asking = Promise.resolve();

  /** Ask for an edit; one after the other, each with the text that the one before left. */
  function ask(act, values = {}, focus = true) {
    asking = asking.then(async () => {
      const scroll = { x: scrollX, y: scrollY };
      await htmx.ajax("POST", panel().dataset.edit, {
        source: panel(),
        target: panel(),
        swap: "innerHTML",
        values: { text: textarea().value, act, state: selected, ...values },
      });
      takeAnswer(act, focus);
      if (matchMedia("(min-width: 1100px)").matches) scrollTo(scroll.x, scroll.y);
    });
    return asking;
  }

  function takeAnswer(act, focus) {
    const text = panel().querySelector("template[data-new-text]")?.content.textContent;
    if (text !== undefined) {
      document.getElementById("chosen").value = panel().querySelector("[data-selected]")?.dataset.selected ?? "";
      replaceText(text);
    }
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
    if (focus) document.getElementById("panel-title")?.focus({ preventScroll: matchMedia("(min-width: 1100px)").matches });
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

  // A block's start is drawn as a way from its Parallel or Map ("n1-n1"). If a loop leads back to the first
  // state, that way ends at a point, and another one goes on from there ("start-n2").
  function edgeOf(path, seen) {
    const [source, target] = path.dataset.edge.split("-");
    if (path.classList.contains("out") && source === target) return null; // a branch to its foot
    const isStart = path.classList.contains("in");
    if (isStart && source === "start") return { block: drawn.get(target)?.block };
    const key = `${path.dataset.edge} ${isStart}`;
    const occurrence = seen.get(key) ?? 0;
    seen.set(key, occurrence + 1);
    if (isStart) return { owner: nameOf(source), index: occurrence, block: `${source}.${occurrence}` };
    if (source === "start") return { block: drawn.get(target)?.block };
    const block = drawn.get(source)?.block;
    if (target === "end") return ends(source) ? null : { source: nameOf(source), target: "", occurrence, block, end: true };
    const end = path.classList.contains("next");
    return { source: nameOf(source), target: nameOf(target), occurrence, block, end };
  }

  // What packs scripts takes the blanks out of a regular expression that stands behind an arrow.
  function ends(id) {
    const label = preview().querySelector(`a[href="#state-${id}"]`)?.getAttribute("aria-label");
    return /, (Succeed|Fail)$/.test(label ?? "");
  }

  function labelOf(edge) {
    if (edge.owner) return `Insert a state at the start of ${edge.owner}, part ${edge.index + 1}`;
    if (!edge.source) return "Insert a state at the start";
    if (!edge.target) return `Insert a state after ${edge.source}`;
    const again = edge.occurrence ? `, edge ${edge.occurrence + 1}` : "";
    return `Insert a state between ${edge.source} and ${edge.target}${again}`;
  }

  const EDGE = ["source", "target", "occurrence", "owner", "index"];

  function setEdge(element, edge) {
    for (const key of EDGE) if (key in edge) element.dataset[key] = edge[key];
  }

  function addPlus(layer, path, edge) {
    // the label of an edge stands in its middle
    const share = path.classList.contains("next") || path.classList.contains("out") || edge.owner ? 0.5 : 0.2;
    const { x, y } = path.getPointAtLength(path.getTotalLength() * share);
    const plus = document.createElementNS(SVG, "a");
    plus.setAttribute("class", "insert");
    plus.setAttribute("href", "#insert");
    plus.setAttribute("role", "button");
    plus.setAttribute("aria-label", labelOf(edge));
    plus.setAttribute("transform", `translate(${x} ${y})`);
    setEdge(plus, edge);
    const circle = document.createElementNS(SVG, "circle");
    circle.setAttribute("r", "9");
    const cross = document.createElementNS(SVG, "path");
    cross.setAttribute("d", "M-4 0H4M0-4V4");
    plus.append(circle, cross);
    layer.append(plus);
  }

  /** Add what takes the end of an edge to another state, at its tip; those of others keep a distance. */
  function addGrip(layer, path, place, edge, taken) {
    const length = path.getTotalLength();
    let point = path.getPointAtLength(length);
    for (let back = 0; back < length / 2; back += GRIP_GAP) {
      point = path.getPointAtLength(length - back);
      if (!taken.some(({ x, y }) => Math.hypot(x - point.x, y - point.y) < GRIP_GAP)) break;
    }
    taken.push(point);
    const grip = document.createElementNS(SVG, "a");
    grip.setAttribute("class", "grip");
    grip.setAttribute("transform", `translate(${point.x} ${point.y})`);
    setEdge(grip, edge);
    Object.assign(grip.dataset, { block: edge.block, end: edge.end ? "1" : "", path: place });
    const title = document.createElementNS(SVG, "title");
    title.textContent = "Drag to another state";
    for (const [kind, radius] of [["reach", 11], ["dot", 4.5]]) {
      const circle = document.createElementNS(SVG, "circle");
      circle.setAttribute("class", kind);
      circle.setAttribute("r", radius);
      grip.append(circle);
    }
    grip.append(title);
    layer.append(grip);
  }

  const isJoint = (path) => path.matches('.in[data-edge^="start-"]');

  function decorate() {
    const svg = preview()?.querySelector("svg.flow");
    readPlaces();
    if (!svg) return;
    for (const old of svg.querySelectorAll(".insert, .grip")) old.remove();
    const seen = new Map();
    const paths = [...svg.querySelectorAll("path[data-edge]")];
    const joined = new Set(paths.filter(isJoint).map((path) => drawn.get(path.dataset.edge.slice("start-".length))?.block));
    const [pluses, grips, taken] = [[], [], []];
    for (const [place, path] of paths.entries()) {
      const edge = edgeOf(path, seen);
      if (!edge?.block) continue;
      if (!isJoint(path)) pluses.push([path, edge]);
      if (isJoint(path)) grips.push([path, place, startOf(edge)]);
      else if (!edge.owner || !joined.has(edge.block)) grips.push([path, place, edge]);
    }
    // Everything is added at once: a place along a path is asked for, and each change before makes that slow.
    const layer = document.createDocumentFragment();
    for (const [path, place, edge] of grips) addGrip(layer, path, place, edge, taken);
    for (const [path, edge] of pluses) addPlus(layer, path, edge); // above the grips
    for (const [place, path] of paths.entries()) path.dataset.path = place;
    svg.append(layer);
    markSelected(false);
    if (refocus) preview().querySelector(refocus)?.focus({ preventScroll: true });
    refocus = "";
  }

  /** Return the edge to the first state of a block, for a line that says no more than the block. */
  function startOf({ block }) {
    const [owner, index] = block.split(".");
    return { owner: nameOf(owner), index: Number(index), block };
  }

  function markSelected(scroll) {
    const place = places.find((each) => each.name === selected);
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
    const name = pinned || selected;
    pinned = "";
    const own = linkOf(name);
    const at = own && offsetOf(own);
    if (at && at.x < width && at.y < height && at.x + at.width > 0 && at.y + at.height > 0) return { name, at, scroll };
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
    markProblems();
    if (event.detail.target?.id !== "problems") return;
    // the graph may be the one there was, but its states stand in other lines
    readPlaces();
    markSelected(false);
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
    if (node || plus || sign) event.preventDefault();
    if (sign) toggleFold(sign);
    else if (node) ask("show", { state: nameOf(node.getAttribute("href").slice("#state-".length)) });
    else if (plus) ask("palette", edgeValues(plus.dataset));
    else if (button) press(button);
    else if (history) {
      editor()?.[history]();
      htmx.trigger(textarea(), "recheck");
    }
  });

  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-reconnect]")) {
      event.preventDefault();
      const leadsTo = event.target.elements.leads_to.value;
      ask("reconnect", { ...edgeValues(event.target.closest(".palette").dataset), leads_to: leadsTo });
    }
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

  let kept = null;

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
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target?.id !== "preview") return;
    document.dispatchEvent(new CustomEvent("redrawn")); // graph.js gives it the scale of the one before
    const before = new Set(places.map((place) => place.name));
    decorate();
    if (places.some((place) => before.has(place.name))) holdStill(kept);
    else showStart();
  });
  document.addEventListener("reconnect", ({ detail }) => ask("reconnect", detail, false));
  document.addEventListener("edge-menu", ({ detail }) => ask("palette", edgeValues(detail)));
  document.addEventListener("DOMContentLoaded", () => {
    if (!panel()) return;
    editor()?.session.setUseWorker(false); // the server finds the problems, those of JSON too
    decorate();
    markProblems();
    editor()?.selection.on("changeCursor", followCaret);
  });
})();
