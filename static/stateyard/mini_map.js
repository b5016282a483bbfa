// A small map of a graph that is larger than its frame, and a shade at each edge with more beyond it.
// The map and the number of states in view have a place of their own beside or below the graph: they cover nothing.
"use strict";
(() => {
  const PAD = 10; // pixels between the map and what is around it
  const WIDEST = 96; // of a map beside the graph
  const HIGHEST = 64; // of a map below the graph
  const WORDS = 44; // pixels for the number of states above a map beside the graph
  const LEAST = 24;
  const TOLERATED = 1.2; // of a graph that is cut by less, a map would hide more than it shows
  const narrow = matchMedia("(max-width: 767px)");
  const frame = () => document.querySelector("[data-picture] [data-graph]");
  const flow = () => frame()?.querySelector("svg.flow");
  const picture = () => frame().closest("[data-picture]");

  // -- its place --------------------------------------------------------------------------------

  let map = null;
  let count = null;
  let reserved = { beside: 0, below: 0 };
  const whole = document.createElement("canvas");

  function createMap() {
    map = document.createElement("canvas");
    map.className = "mini-map";
    map.setAttribute("aria-hidden", "true"); // the same as the graph, which can be scrolled
    count = document.createElement("span");
    count.className = "note in-view";
    frame().after(map, count);
    map.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      map.setPointerCapture(event.pointerId);
      scrollTo(event);
    });
    map.addEventListener("pointermove", (event) => event.buttons === 1 && scrollTo(event));
  }

  function scrollTo(event) {
    const { left, top, width, height } = map.getBoundingClientRect();
    const room = frame();
    room.scrollLeft = ((event.clientX - left) / width) * room.scrollWidth - room.clientWidth / 2;
    room.scrollTop = ((event.clientY - top) / height) * room.scrollHeight - room.clientHeight / 2;
  }

  /** Return the size of a map, and how much of the frame it takes; null if the graph needs none. */
  function placeOfMap(graph, room) {
    if (narrow.matches || !room.width) return null;
    const [wide, high] = [graph.width / room.width, graph.height / room.height];
    if (Math.max(wide, high) < TOLERATED) return null;
    const fitsBeside = graph.width <= room.width - LEAST - 2 * PAD;
    // a map beside a graph that has just the room for its width would cut it: that map goes below
    if (high >= wide && fitsBeside) {
      // where the graph alone fits beside it, a narrower map leaves it room
      const free = room.width - graph.width - 2 * PAD;
      const widest = Math.min(WIDEST, free > LEAST ? free : WIDEST);
      const ratio = Math.min(widest / graph.width, (room.height - 2 * PAD - WORDS) / graph.height);
      const width = Math.max(LEAST, Math.round(graph.width * ratio));
      return { width, height: Math.round(graph.height * ratio), beside: width + 2 * PAD, below: 0 };
    }
    const ratio = Math.min((room.width - 2 * PAD) / graph.width, HIGHEST / graph.height);
    const height = Math.max(LEAST, Math.round(graph.height * ratio));
    return { width: Math.round(graph.width * ratio), height, beside: 0, below: height + 2 * PAD };
  }

  function reserve(place) {
    const { beside = 0, below = 0 } = place ?? {};
    if (beside === reserved.beside && below === reserved.below) return;
    reserved = { beside, below };
    for (const { style } of [picture(), frame()]) {
      for (const side of Object.keys(reserved)) style.setProperty(`--map-${side}`, `${reserved[side]}px`);
    }
  }

  function fitMap() {
    const [room, svg] = [frame(), flow()];
    if (!room?.clientWidth) return;
    if (!map?.isConnected) createMap();
    const top = `${room.offsetTop}px`;
    if (picture().style.getPropertyValue("--frame-top") !== top) picture().style.setProperty("--frame-top", top);
    const graph = { width: svg.width.baseVal.value, height: svg.height.baseVal.value };
    const highest = parseFloat(getComputedStyle(room).maxHeight) || 0;
    const height = Math.max(room.clientHeight, highest) + reserved.below;
    const place = placeOfMap(graph, { width: room.clientWidth + reserved.beside, height });
    map.hidden = count.hidden = !place;
    count.dataset.side = map.dataset.side = place?.below ? "below" : "beside";
    if (place?.beside) count.hidden = place.width < 80; // no room for words
    if (place) [whole.width, whole.height] = [place.width, place.height];
    reserve(place);
  }

  // -- what it shows ----------------------------------------------------------------------------

  function drawMap() {
    fitMap();
    if (map && !map.hidden) drawStates(frame(), flow());
    drawWindow();
  }

  let boxes = []; // of the states: left, top, right, bottom in the graph, and whether it holds others

  // The states are drawn once, on a canvas of their own: a graph that is moved draws the window only.
  function drawStates(room, svg) {
    const pen = whole.getContext("2d");
    pen.clearRect(0, 0, whole.width, whole.height);
    const scale = svg.clientWidth / svg.viewBox.baseVal.width;
    const shift = Math.max(0, (room.scrollWidth - svg.clientWidth) / 2);
    const [x, y] = [whole.width / room.scrollWidth, whole.height / room.scrollHeight];
    const tones = new Map();
    boxes = [];
    for (const node of svg.querySelectorAll(".node")) {
      const box = node.querySelector(".box");
      const kind = node.getAttribute("class");
      // not the stroke of the box: while that fades, it is the colour of the state before
      if (!tones.has(kind)) tones.set(kind, getComputedStyle(node).getPropertyValue("--map-tone"));
      const tone = tones.get(kind);
      const place = ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)) * scale);
      const rectangle = [(place[0] + shift) * x, place[1] * y, Math.max(2, place[2] * x), Math.max(2, place[3] * y)];
      pen.fillStyle = pen.strokeStyle = tone;
      const holds = node.classList.contains("container");
      if (holds) pen.strokeRect(...rectangle);
      else pen.fillRect(...rectangle);
      const [left, top] = [place[0] + shift, place[1]];
      boxes.push([left, top, left + place[2], top + place[3], holds]);
    }
  }

  function drawWindow() {
    const room = frame();
    if (!room) return;
    const { scrollLeft, scrollTop, scrollWidth, scrollHeight, clientWidth, clientHeight } = room;
    shade({
      left: scrollLeft > 4,
      top: scrollTop > 4,
      right: scrollLeft + clientWidth < scrollWidth - 4,
      bottom: scrollTop + clientHeight < scrollHeight - 4,
    });
    if (!map || map.hidden) return;
    const [toX, toY] = [scrollLeft + clientWidth + 1, scrollTop + clientHeight + 1];
    const seen = boxes.filter(([left, top, right, bottom, holds]) => {
      if (holds) return left < toX && right > scrollLeft && top < toY && bottom > scrollTop; // its name is in sight
      return left >= scrollLeft - 1 && right <= toX && top >= scrollTop - 1 && bottom <= toY;
    });
    count.textContent = `${seen.length} of ${boxes.length} states in view`;
    [map.width, map.height] = [whole.width, whole.height];
    const [x, y] = [map.width / scrollWidth, map.height / scrollHeight];
    const pen = map.getContext("2d");
    pen.drawImage(whole, 0, 0);
    pen.strokeStyle = getComputedStyle(map).color;
    pen.lineWidth = 2;
    pen.strokeRect(scrollLeft * x + 1, scrollTop * y + 1, clientWidth * x - 2, clientHeight * y - 2);
  }

  function shade(edges) {
    const beyond = Object.keys(edges).filter((edge) => edges[edge]).join(" ");
    if (picture().dataset.beyond !== beyond) picture().dataset.beyond = beyond;
  }

  // -- when -------------------------------------------------------------------------------------

  let moved = 0;
  const moveSoon = () => {
    cancelAnimationFrame(moved);
    moved = requestAnimationFrame(drawWindow);
  };
  let waiting = 0;
  const drawSoon = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(drawMap);
  };

  // A graph to be fitted may have the whole frame; the new scale tells whether a map takes a part.
  document.addEventListener("fit-graph", () => frame() && reserve(null));
  document.addEventListener("scaled-graph", () => frame() && fitMap());
  const sizes = new ResizeObserver(drawSoon);

  /** Follow a graph: the one of the page, or one that was drawn anew in its place. */
  function followGraph() {
    const room = frame();
    if (!room) return;
    reserved = { beside: NaN, below: NaN }; // a new picture has reserved nothing
    drawSoon();
    room.addEventListener("scroll", moveSoon, { passive: true });
    sizes.disconnect();
    sizes.observe(picture());
    sizes.observe(flow());
  }

  document.addEventListener("DOMContentLoaded", followGraph);
  document.addEventListener("redrawn", followGraph);
  document.addEventListener("paint", drawSoon);
  document.addEventListener("theme", drawSoon);
})();
