// The + on each edge of the editor's graph, which inserts a state, and the grip at its tip, which reconnects it.
"use strict";
const edgeButtons = (() => {
  const GRIP_GAP = 16; // pixels
  const SVG = "http://www.w3.org/2000/svg";
  let drawn = new Map(); // node -> what the page says of its state
  const nameOf = (id) => drawn.get(id)?.name ?? "";

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
    if (target === "end") return ends(path.ownerSVGElement, source) ? null : { source: nameOf(source), target: "", occurrence, block, end: true };
    const end = path.classList.contains("next");
    return { source: nameOf(source), target: nameOf(target), occurrence, block, end };
  }

  // What packs scripts takes the blanks out of a regular expression that stands behind an arrow.
  function ends(svg, id) {
    const label = svg.querySelector(`a[href="#state-${id}"]`)?.getAttribute("aria-label");
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

  const REACH = 9; // pixels: the radius of a +
  const SHARES = [0.35, 0.65, 0.1, 0.8, 0.05]; // where else along its edge a + may stand

  /** Return where on its edge a + covers no label, no grip and no other +. */
  function placeOfPlus(path, edge, { labels, pluses, grips }) {
    // the label of an edge stands in its middle
    const wished = path.classList.contains("next") || path.classList.contains("out") || edge.owner ? 0.5 : 0.2;
    const length = path.getTotalLength();
    const points = [wished, ...SHARES].map((share) => path.getPointAtLength(length * share));
    const near = ({ x, y }, places, gap) => places.some((other) => Math.hypot(other.x - x, other.y - y) < gap);
    const covers = ({ x, y }) =>
      labels.some((box) => x > box.x - REACH && x < box.x + box.width + REACH && y > box.y - REACH && y < box.y + box.height + REACH);
    const free = points.find((point) => !covers(point) && !near(point, pluses, 2 * REACH) && !near(point, grips, REACH + 4));
    return free ?? points.find((point) => !near(point, pluses, 2 * REACH)) ?? points[0];
  }

  function addPlus(layer, path, edge, taken) {
    const { x, y } = placeOfPlus(path, edge, taken);
    taken.pluses.push({ x, y });
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

  /** Return the edge to the first state of a block, for a line that says no more than the block. */
  function startOf({ block }) {
    const [owner, index] = block.split(".");
    return { owner: nameOf(owner), index: Number(index), block };
  }

  /** Give each edge of a graph its buttons. ``nodes``: node -> name and block of its state. */
  function put(svg, nodes) {
    drawn = nodes;
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
    const labels = [...svg.querySelectorAll(".edge-label-box")].map((box) => ({
      x: box.x.baseVal.value,
      y: box.y.baseVal.value,
      width: box.width.baseVal.value,
      height: box.height.baseVal.value,
    }));
    const places = { labels, pluses: [], grips: taken };
    for (const [path, edge] of pluses) addPlus(layer, path, edge, places); // above the grips
    for (const [place, path] of paths.entries()) path.dataset.path = place;
    svg.append(layer);
  }

  return { put };
})();
