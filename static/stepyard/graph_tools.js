// Tools of a large graph: find a state, full screen, keys, and a small map of the whole.
"use strict";
(() => {
  const MAP_WIDTH = 180;
  const MAP_HEIGHT = 140;
  const graph = () => document.querySelector("[data-graph]");
  const flow = () => graph()?.querySelector("svg.flow");

  // -- find a state -----------------------------------------------------------------------------

  let matches = [];
  let current = -1;

  let folded = [];

  // States that the graph does not show stand in the table, or in the text of a definition.
  function foldedStates(wanted) {
    const rows = [...document.querySelectorAll("#step-table [data-row][data-step]")];
    const names = rows.map((row) => ({ name: row.dataset.step, place: "" }));
    for (const state of document.querySelectorAll(".definition .src")) {
      const name = /^"((?:[^"\\]|\\.)*)"/.exec(state.textContent)?.[0] ?? '""';
      names.push({ name: JSON.parse(name), place: state.id });
    }
    for (const { dataset } of document.querySelectorAll("#state-list > li")) names.push({ name: dataset.name, edited: true });
    return names.filter(({ name }) => name.toLowerCase().includes(wanted));
  }

  // The server unfolds what holds a state of an execution; the text of a definition has them all.
  function openFolded() {
    if (folded[0].edited) {
      document.dispatchEvent(new CustomEvent("unfold-state", { detail: folded[0].name }));
      return;
    }
    if (folded[0].place) {
      location.hash = folded[0].place;
      return;
    }
    const address = new URL(location.href);
    address.searchParams.set("step", folded[0].name);
    for (const key of ["visit", "iteration"]) address.searchParams.delete(key);
    location.assign(address);
  }

  function find(text) {
    for (const node of matches) node.classList.remove("found");
    const wanted = text.trim().toLowerCase();
    const nodes = wanted ? [...document.querySelectorAll("svg.flow [data-step]")] : [];
    matches = nodes.filter((node) => node.dataset.step.toLowerCase().includes(wanted));
    for (const node of matches) node.classList.add("found");
    current = -1;
    folded = wanted && !matches.length ? foldedStates(wanted) : [];
    const found = matches.length || folded.length;
    const count = `${found} ${found === 1 ? "state" : "states"}${folded.length ? " in folded groups" : ""}`;
    document.querySelector("[data-found-states]").textContent = wanted ? count : "";
    document.querySelector("[data-find-state]").setAttribute("aria-invalid", String(Boolean(wanted) && !found));
    if (matches.length) next(1);
  }

  function next(by) {
    current = (current + by + matches.length) % matches.length;
    const box = matches[current].querySelector(".box").getBoundingClientRect();
    const room = graph().getBoundingClientRect();
    graph().scrollBy({
      left: box.left + box.width / 2 - room.left - room.width / 2,
      top: box.top + Math.min(box.height, room.height) / 2 - room.top - room.height / 2,
    });
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-find-state]")) find(event.target.value);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.("[data-find-state]")) return;
    if (event.key === "Enter" && folded.length) openFolded();
    if (event.key === "Enter" && matches.length) {
      event.preventDefault();
      // Enter opens the only match; of several it goes from one to the next
      if (matches.length === 1) matches[0].dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
      else next(event.shiftKey ? -1 : 1);
    }
    if (event.key === "Escape") {
      event.target.value = "";
      find("");
    }
  });

  // -- full screen ------------------------------------------------------------------------------

  document.addEventListener("click", async (event) => {
    if (!event.target.closest("[data-full-screen]")) return;
    if (document.fullscreenElement) await document.exitFullscreen();
    else await (event.target.closest("[data-whole]") ?? event.target.closest(".card")).requestFullscreen();
  });
  document.addEventListener("fullscreenchange", () => {
    const button = document.querySelector("[data-full-screen]");
    button?.setAttribute("aria-pressed", String(Boolean(document.fullscreenElement)));
    drawMap();
  });

  // -- keys, while the graph or a state in it has the focus ---------------------------------------

  const PAN = 80; // pixels
  const PANS = { ArrowLeft: [-PAN, 0], ArrowRight: [PAN, 0], ArrowUp: [0, -PAN], ArrowDown: [0, PAN] };
  const ZOOMS = { "+": "1", "=": "1", "-": "-1", 0: "0" };

  document.addEventListener("keydown", (event) => {
    const room = event.target.closest?.("[data-graph]");
    if (!room || event.ctrlKey || event.metaKey || event.altKey) return;
    const pan = PANS[event.key];
    const zoom = ZOOMS[event.key];
    if (!pan && zoom === undefined) return;
    event.preventDefault();
    if (pan) room.scrollBy({ left: pan[0], top: pan[1] });
    else document.querySelector(`[data-zoom-by="${zoom}"]`)?.click();
  });

  // -- the small map ----------------------------------------------------------------------------

  let map = null;
  const whole = document.createElement("canvas");

  function createMap() {
    map = document.createElement("canvas");
    map.className = "mini-map";
    map.setAttribute("aria-hidden", "true"); // the same as the graph, which can be scrolled
    graph().after(map);
    map.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      map.setPointerCapture(event.pointerId);
      scrollTo(event);
    });
    map.addEventListener("pointermove", (event) => event.buttons === 1 && scrollTo(event));
  }

  function scrollTo(event) {
    const { left, top, width, height } = map.getBoundingClientRect();
    const room = graph();
    room.scrollLeft = ((event.clientX - left) / width) * room.scrollWidth - room.clientWidth / 2;
    room.scrollTop = ((event.clientY - top) / height) * room.scrollHeight - room.clientHeight / 2;
  }

  function drawMap() {
    const [room, svg] = [graph(), flow()];
    if (!room || !svg) return;
    if (!map?.isConnected) createMap();
    const larger = room.scrollWidth > room.clientWidth + 4 || room.scrollHeight > room.clientHeight + 4;
    map.hidden = !larger;
    if (!larger) return;
    const ratio = Math.min(MAP_WIDTH / room.scrollWidth, MAP_HEIGHT / room.scrollHeight);
    whole.width = Math.max(24, Math.round(room.scrollWidth * ratio));
    whole.height = Math.max(24, Math.round(room.scrollHeight * ratio));
    drawStates(room, svg);
    drawWindow();
  }

  // The states are drawn once, on a canvas of their own: a graph that is moved draws the window only.
  function drawStates(room, svg) {
    const pen = whole.getContext("2d");
    const scale = svg.clientWidth / svg.viewBox.baseVal.width;
    const shift = Math.max(0, (room.scrollWidth - svg.clientWidth) / 2);
    const [x, y] = [whole.width / room.scrollWidth, whole.height / room.scrollHeight];
    const tones = new Map();
    for (const node of svg.querySelectorAll(".node")) {
      const box = node.querySelector(".box");
      const kind = node.getAttribute("class");
      if (!tones.has(kind)) tones.set(kind, getComputedStyle(box).stroke);
      const tone = tones.get(kind);
      const place = ["x", "y", "width", "height"].map((name) => box[name].baseVal.value * scale);
      const rectangle = [(place[0] + shift) * x, place[1] * y, Math.max(2, place[2] * x), Math.max(2, place[3] * y)];
      pen.fillStyle = pen.strokeStyle = tone;
      if (node.classList.contains("container")) pen.strokeRect(...rectangle);
      else pen.fillRect(...rectangle);
    }
  }

  function drawWindow() {
    const room = graph();
    if (!room || !map || map.hidden) return;
    [map.width, map.height] = [whole.width, whole.height];
    const [x, y] = [map.width / room.scrollWidth, map.height / room.scrollHeight];
    const pen = map.getContext("2d");
    pen.drawImage(whole, 0, 0);
    pen.strokeStyle = getComputedStyle(map).color;
    pen.lineWidth = 2;
    pen.strokeRect(room.scrollLeft * x + 1, room.scrollTop * y + 1, room.clientWidth * x - 2, room.clientHeight * y - 2);
  }

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

  const sizes = new ResizeObserver(drawSoon);

  /** Follow a graph: the one of the page, or one that was drawn anew in its place. */
  function followGraph() {
    const room = graph();
    if (!room || !document.querySelector("[data-picture]")) return;
    drawSoon();
    room.addEventListener("scroll", moveSoon, { passive: true });
    sizes.disconnect();
    sizes.observe(room);
    sizes.observe(flow());
  }

  document.addEventListener("DOMContentLoaded", followGraph);
  document.addEventListener("redrawn", followGraph);
  document.addEventListener("paint", drawSoon);
  document.addEventListener("theme", drawSoon);
})();
