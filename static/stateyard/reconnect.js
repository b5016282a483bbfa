// Drag the end of an edge to another state of its level. The server changes the field that makes the edge;
// what is dragged here is only drawn. By keyboard, the panel of an edge does the same.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const PRESS_PX = 4; // a pointer that moved less has pressed the grip, not dragged it
  const NEAR_PX = 36; // so near to the frame's border, the graph moves on
  const SLACK = 6; // a drop so near to a box is meant for it
  const FIELDS = ["source", "target", "occurrence", "owner", "index"];
  let drag = null;

  const edgeOf = ({ dataset }) => Object.fromEntries(FIELDS.map((key) => [key, dataset[key] ?? ""]));
  const announce = (text) => {
    document.getElementById("announce").textContent = text;
  };

  /** Return what the edge of a grip may lead to: the name ("" for the end), the element to mark, its box. */
  function targetsOf(grip, svg) {
    const { block, source, end } = grip.dataset;
    const targets = [];
    for (const { dataset } of document.querySelectorAll("#state-list > li")) {
      if (dataset.block !== block || !dataset.node || (end && dataset.name === source)) continue;
      const element = svg.querySelector(`a.node[href="#state-${dataset.node}"]`);
      if (element) targets.push({ name: dataset.name, element, box: element.querySelector(".box") });
    }
    const last = end && block === ".0" && svg.querySelector("rect.end:not([data-start])");
    if (last) targets.push({ name: "", element: last, box: last });
    return targets;
  }

  const pointOf = (svg, { clientX, clientY }) => new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());

  function targetAt({ x, y }) {
    return drag.targets.find(({ box }) => {
      const [left, top] = [box.x.baseVal.value - SLACK, box.y.baseVal.value - SLACK];
      const [right, bottom] = [left + box.width.baseVal.value + 2 * SLACK, top + box.height.baseVal.value + 2 * SLACK];
      return left <= x && x <= right && top <= y && y <= bottom;
    });
  }

  // -- dragging -----------------------------------------------------------------------------------

  function begin(grip, event) {
    const svg = grip.ownerSVGElement;
    const path = svg.querySelector(`path[data-path="${grip.dataset.path}"]`);
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("class", "drag-line");
    line.setAttribute("marker-end", "url(#tip)");
    drag = { grip, svg, path, line, targets: targetsOf(grip, svg), event, from: event, target: null };
    grip.setPointerCapture(event.pointerId);
  }

  function lift() {
    const { svg, path, line, targets } = drag;
    drag.lifted = true;
    svg.classList.add("dragging");
    path.classList.add("dragged");
    svg.append(line);
    for (const { element } of targets) element.classList.add("drop-target");
    requestAnimationFrame(scrollOn);
  }

  function move(event) {
    drag.event = event;
    const { clientX, clientY } = drag.from;
    if (!drag.lifted && Math.hypot(event.clientX - clientX, event.clientY - clientY) < PRESS_PX) return;
    if (!drag.lifted) lift();
    follow();
  }

  /** Draw the edge to the pointer, and mark the state under it. */
  function follow() {
    const point = pointOf(drag.svg, drag.event);
    const start = drag.path.getPointAtLength(0);
    drag.line.setAttribute("d", `M${start.x} ${start.y}L${point.x} ${point.y}`);
    const target = targetAt(point) ?? null;
    if (target === drag.target) return;
    drag.target?.element.classList.remove("drop-here");
    target?.element.classList.add("drop-here");
    drag.target = target;
    if (target) announce(`Drop to lead to ${target.name || "the end"}.`);
  }

  /** Move the graph while the pointer is near the border of its frame. */
  function scrollOn() {
    if (!drag?.lifted) return;
    const graph = drag.svg.closest("[data-graph]");
    const frame = graph.getBoundingClientRect();
    const { clientX, clientY } = drag.event;
    const speed = (at, low, high) => {
      if (at < low + NEAR_PX) return Math.max(at - low - NEAR_PX, -NEAR_PX) / 3;
      return at > high - NEAR_PX ? Math.min(at - high + NEAR_PX, NEAR_PX) / 3 : 0;
    };
    const bottom = Math.min(frame.bottom, innerHeight);
    graph.scrollBy(speed(clientX, frame.left, frame.right), speed(clientY, Math.max(frame.top, 0), bottom));
    follow();
    requestAnimationFrame(scrollOn);
  }

  function stop() {
    const { svg, path, line, targets } = drag;
    drag = null;
    line.remove();
    svg.classList.remove("dragging");
    path.classList.remove("dragged");
    for (const { element } of targets) element.classList.remove("drop-target", "drop-here");
  }

  function drop() {
    const { grip, lifted, target } = drag;
    stop();
    const edge = edgeOf(grip);
    const send = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
    if (!lifted) send("edge-menu", edge);
    else if (!target) announce("Nothing was changed: drop the edge on a marked state.");
    else if (target.name !== edge.target || !edge.source) send("reconnect", { ...edge, leads_to: target.name });
  }

  document.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest?.("#preview .grip");
    if (!grip || event.button !== 0 || drag) return;
    event.preventDefault();
    begin(grip, event);
  });
  document.addEventListener("pointermove", (event) => {
    if (drag && event.pointerId === drag.from.pointerId) move(event);
  });
  document.addEventListener("pointerup", (event) => {
    if (drag && event.pointerId === drag.from.pointerId) drop();
  });
  document.addEventListener("pointercancel", () => drag && stop());
  document.addEventListener(
    "keydown",
    (event) => {
      if (!drag || event.key !== "Escape") return;
      event.preventDefault();
      event.stopImmediatePropagation(); // the panel stays open
      stop();
      announce("Nothing was changed.");
    },
    { capture: true },
  );
  // The graph is drawn anew under the pointer: its edges are others now.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (drag && event.detail.target?.id === "preview") stop();
  });
})();
