// Live pages: polls that the reader can pause, repainting of changed parts, clocks.
// The server decides and sends every text; only running durations are computed here.
"use strict";
(() => {
  const root = document.documentElement;
  const skew = clockSkew(Number(root.dataset.now));
  let paused = false;

  // -- clocks -----------------------------------------------------------------------------------

  /** Return by how much this clock is ahead of the server's: no more than the page's own request proves. */
  function clockSkew(server) {
    const [loaded] = performance.getEntriesByType("navigation");
    const { requestStart = 0, responseEnd = 0 } = loaded ?? {};
    const [asked, answered] = [requestStart, responseEnd || performance.now()].map((at) => performance.timeOrigin + at);
    return Math.max(0, asked - server) + Math.min(0, answered - server);
  }

  const pad = (value, width = 2) => String(value).padStart(width, "0");

  function duration(milliseconds) {
    const seconds = Math.max(0, Math.floor(milliseconds / 1000));
    const units = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
    for (const [unit, name, small, smallName] of units) {
      if (seconds >= unit) {
        const rest = Math.floor((seconds % unit) / small);
        return `${Math.floor(seconds / unit)} ${name} ${pad(rest)} ${smallName}`;
      }
    }
    return `${seconds} s`;
  }

  function tick() {
    const now = Date.now() - skew;
    for (const element of document.querySelectorAll("[data-since]")) {
      element.textContent = duration(now - Number(element.dataset.since));
    }
    for (const element of document.querySelectorAll("[data-until]")) {
      element.textContent = duration(Number(element.dataset.until) - now + 999);
    }
    showRelative(now);
  }

  const AGES = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"]]; // below so many seconds, unit, name

  /** Show how long ago moments of the last day were; the moment stands in the title. */
  function showRelative(now) {
    for (const element of document.querySelectorAll("time[data-relative]")) {
      const moment = new Date(element.dateTime);
      const seconds = Math.max(0, Math.floor((now - moment) / 1000));
      const [, unit, name] = AGES.find(([most]) => seconds < most) ?? [];
      const exact = clock(moment);
      element.title = `${exact} ${zone()}`;
      const text = unit ? `${Math.floor(seconds / unit)} ${name} ago` : exact;
      if (element.textContent !== text) element.textContent = text;
    }
  }

  function zone() {
    if (root.dataset.clock !== "local") return "UTC";
    const parts = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts();
    return parts.find((part) => part.type === "timeZoneName")?.value ?? "local";
  }

  function clock(time, precise) {
    const part = (name) => time[`${root.dataset.clock === "local" ? "get" : "getUTC"}${name}`]();
    const day = `${part("FullYear")}-${pad(part("Month") + 1)}-${pad(part("Date"))}`;
    const hour = `${pad(part("Hours"))}:${pad(part("Minutes"))}:${pad(part("Seconds"))}`;
    return `${day} ${hour}${precise ? `.${pad(part("Milliseconds"), 3)}` : ""}`;
  }

  const AXIS_PARTS = { hour: [11, 16], day: [5, 10], both: [5, 16] }; // of what clock() writes

  function showTimes(within = document) {
    const name = zone();
    for (const element of within.querySelectorAll?.("time[datetime]:not([data-relative])") ?? []) {
      const whole = clock(new Date(element.dateTime), "precise" in element.dataset);
      const text = "minute" in element.dataset ? whole.slice(0, 16) : whole;
      const shown = text.startsWith(`${element.dataset.day} `) ? text.slice(11) : text;
      element.textContent = "bare" in element.dataset ? shown : `${text} ${name}`;
    }
    for (const element of within.querySelectorAll?.("[data-axis]") ?? []) {
      const text = clock(new Date(Number(element.dataset.ms)));
      element.textContent = text.slice(...AXIS_PARTS[element.dataset.axis]);
    }
    for (const element of within.querySelectorAll?.("[data-zone]") ?? []) element.textContent = name;
    showRelative(Date.now() - skew);
  }

  // -- repainting -------------------------------------------------------------------------------

  const TONES = ["idle", "running", "succeeded", "caught", "failed", "aborted"];

  function setTone(element, tone) {
    element.classList.remove(...TONES);
    element.classList.add(tone);
    element.querySelector("use")?.setAttribute("href", `#status-icon-${tone}`);
  }

  const painted = new WeakMap(); // element -> what it shows, as text: most do not change with a tick

  /** Return whether an element shows something else than what is to be painted now. */
  function differs(element, node) {
    if (!element) return false;
    const text = JSON.stringify([node, inPast()]);
    if (painted.get(element) === text) return false;
    painted.set(element, text);
    return true;
  }

  /** Find all boxes, bars and rows at once: to look for each in a page of 1,000 takes a second. */
  function findParts() {
    const by = (selector, name) => {
      const elements = [...document.querySelectorAll(selector)];
      return new Map(elements.reverse().map((element) => [element.dataset[name], element])); // the first counts
    };
    const [boxes, bars] = [by("[data-node]", "node"), by(".timeline [data-bar]", "bar")];
    return { boxes, bars, rows: by(".step-table [data-row]", "row") };
  }

  function paintNodes(nodes) {
    const { boxes, bars, rows } = findParts();
    for (const [id, node] of Object.entries(nodes)) {
      if (differs(boxes.get(id), node)) paintBox(boxes.get(id), node);
      if (differs(bars.get(id), node)) paintWorked(bars.get(id), node);
      if (differs(rows.get(id), node)) paintRow(rows.get(id), node);
    }
  }

  function paintBox(box, node) {
    const shown = "folded" in box.dataset ? { ...node, ...node.folded } : node;
    setTone(box, shown.tone);
    box.setAttribute("aria-label", shown.label);
    paintWords(box, shown);
    if (node.child && !inPast()) paintChild(box, node.child);
  }

  const createSvg = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // As in graph/_node.html: a link beside the box to what its Task has started.
  function paintChild(box, child) {
    if (box.nextElementSibling?.matches(".child-sign")) box.nextElementSibling.remove();
    const { x, y, width, height } = box.querySelector(".box");
    const [right, bottom] = [x.baseVal.value + width.baseVal.value, y.baseVal.value + height.baseVal.value];
    const sign = createSvg("a", { class: "child-sign", href: child.href, "aria-label": child.label });
    const title = createSvg("title", {});
    title.textContent = child.label;
    const rectangle = createSvg("rect", { x: right - 30, y: bottom - 30, width: 24, height: 24, rx: 6 });
    sign.append(title, rectangle, createSvg("path", { d: `M${right - 22},${bottom - 14} l8,-8 m-6,0 h6 v6` }));
    box.after(sign);
  }

  function paintRow(row, node) {
    const cell = (name) => row.querySelector(`[data-cell="${name}"]`); // readers choose the columns
    const status = cell("status")?.firstElementChild;
    if (status) {
      setTone(status, node.tone);
      status.lastChild.textContent = node.word;
    }
    paintVisits(cell("visits"), node);
    cell("retries")?.replaceChildren(node.retries);
    paintSpent(row, node);
    paintChildren(cell("children"), node);
    cell("entered")?.replaceChildren(moment(node.entered), ...(node.visits > 1 ? [" ", note("first")] : []));
    cell("left")?.replaceChildren(moment(node.left));
    showTimes(row);
  }

  function note(words) {
    const span = document.createElement("span");
    span.className = "note";
    span.textContent = words;
    return span;
  }

  // As in _step_row.html: where no column counts the retries, they stand beside the visits.
  function paintVisits(cell, node) {
    cell?.replaceChildren(node.visits);
    if (!node.retries || cell?.dataset.saysRetries === undefined) return;
    const count = node.retries.toLocaleString("en");
    cell.append(" ", note(`(${count} ${node.retries === 1 ? "retry" : "retries"})`));
  }

  function paintChildren(cell, node) {
    if (node.child) {
      const link = document.createElement("a");
      link.href = node.child.href;
      link.textContent = node.child.words;
      cell?.replaceChildren(link);
    } else if (node.children) cell?.replaceChildren(node.children);
  }

  // As in graph/_node.html, at the upper right corner of the box.
  function createBadge(box, words, [left, middle, width]) {
    const right = box.x.baseVal.value + box.width.baseVal.value;
    const top = box.y.baseVal.value;
    const badge = createSvg("g", { class: "visit-badge" });
    const text = createSvg("text", { x: right + middle, y: top + 4 });
    text.textContent = words;
    badge.append(createSvg("rect", { x: right + left, y: top - 9, width, height: 18, rx: 9 }), text);
    return badge;
  }

  function paintSpent(row, { worked_since: from, worked }) {
    const since = document.createElement("span");
    if (from) since.dataset.since = from;
    row?.querySelector('[data-cell="spent"]')?.replaceChildren(from ? since : worked || "-");
  }

  // As in timeline/_row_duration.html: a bar shows all visits of its state.
  function paintWorked(row, node) {
    const drawn = node.drawn ?? node; // of the attempt that was chosen, if one was
    paintSpent(row, drawn);
    if (node.children) row?.querySelector('[data-cell="children"]')?.replaceChildren(node.children);
    if (!(drawn.visits > 1)) return;
    const count = note(`${drawn.visits.toLocaleString("en")} visits`);
    count.classList.add("visit-count");
    row?.querySelector('[data-cell="spent"]')?.append(" ", count);
  }

  const inPast = () => new URLSearchParams(location.search).has("at");

  function paintWords(box, node) {
    const detail = box.querySelector(".node-detail");
    detail.textContent = node.under;
    const span = document.createElementNS("http://www.w3.org/2000/svg", "tspan");
    if (node.countdown && !inPast()) {
      const { since, until } = node.countdown;
      if (since) span.dataset.since = since;
      else span.dataset.until = until;
      detail.replaceChildren(node.countdown.before, span, node.countdown.after);
    } else if (node.since && !inPast()) {
      span.dataset.since = node.since;
      detail.append(" · ", span);
    }
    box.querySelector(":scope > .visit-badge")?.remove();
    if (node.badge) box.append(createBadge(box.querySelector(".box"), node.badge, node.badge_place));
  }

  function moment(milliseconds) {
    if (!milliseconds) return "-";
    const time = document.createElement("time");
    time.dateTime = new Date(milliseconds).toISOString();
    time.dataset.precise = time.dataset.bare = "";
    return time;
  }

  // Add options and keep the existing ones: the list may be open.
  function offerTypes(types) {
    const select = document.querySelector("[data-history] #type");
    for (const type of select ? types : []) {
      const options = [...select.options].slice(1);
      if (options.some((option) => option.text === type)) continue;
      select.add(new Option(type), options.find((option) => option.text > type) ?? null);
    }
  }

  // The slider ends at the last event of the history; its handle stays at the end.
  function extendSlider(last) {
    const slider = document.getElementById("at");
    if (!slider || !last || new URLSearchParams(location.search).has("at")) return;
    slider.max = last;
    slider.value = last;
  }

  /** Close the question whether to stop it: somebody else has, or it has ended by itself. */
  function closeStopDialog() {
    document.getElementById("stop-dialog")?.close();
  }

  function paint() {
    const poll = document.getElementById("poll");
    if (poll && "ended" in poll.dataset) closeStopDialog();
    if (!poll?.dataset.paint) return;
    const { nodes, taken, types } = JSON.parse(poll.dataset.paint);
    paintNodes(nodes);
    offerTypes(types ?? []);
    extendSlider(poll.dataset.cursor);
    paintWays(taken);
    tick();
  }

  function paintWays(taken) {
    const ways = new Set(taken);
    for (const edge of document.querySelectorAll("[data-edge]")) {
      const isTaken = ways.has(edge.dataset.way ?? edge.dataset.edge);
      if (isTaken === edge.classList.contains("taken")) continue;
      edge.classList.toggle("taken", isTaken);
      if (isTaken) edge.parentNode.append(edge); // above those it shares a way with
      if (edge.hasAttribute("marker-end")) {
        edge.setAttribute("marker-end", isTaken ? "url(#tip-taken)" : "url(#tip)");
      }
    }
  }

  // -- polls ------------------------------------------------------------------------------------

  const isPoll = (event) => event.detail.elt?.dataset && "poll" in event.detail.elt.dataset;

  /** Show whether updates arrive. The note stands on a page without the sign of it; "" for none. */
  function setLiveState(state, words, note = "") {
    const live = document.getElementById("live");
    if (live) {
      live.dataset.state = state;
      live.querySelector("[data-live-text]").textContent = words;
    }
    let shown = document.getElementById("not-live");
    if (live || !note) return shown?.remove();
    if (!shown) {
      shown = document.createElement("div");
      shown.id = "not-live";
      shown.className = "banner caught";
      shown.setAttribute("role", "alert");
      document.querySelector("main").append(shown);
    }
    if (shown.textContent !== note) shown.textContent = note;
  }

  /** Return the stamp of the rows in view, "" of a page that has not read them yet. */
  function shownRows() {
    const inTime = new URLSearchParams(location.search).get("view") === "timeline";
    return document.getElementById(inTime ? "timeline-rows" : "step-table")?.dataset.rows ?? "";
  }

  let lostSince = ""; // the time of the first poll that failed, "" while they succeed
  let askedFor = ""; // the query string of the page when it asked what changed

  function addPagePosition(parameters) {
    askedFor = location.search;
    for (const [key, value] of new URLSearchParams(location.search)) parameters[key] = value;
    const rows = document.querySelectorAll("#events > tr:not(.detail)");
    parameters.shown = rows.length;
    parameters.seen = rows.length ? rows[rows.length - 1].id.slice(1) : 0;
    parameters.follow = document.getElementById("history")?.dataset.follow ?? "";
    parameters.note = document.getElementById("note-list")?.dataset.noteStamp ?? "";
    parameters.seen_rows = shownRows();
    parameters.drawn = document.getElementById("axis")?.dataset.drawn ?? "";
    const shown = document.querySelector("#panel [data-visit]");
    parameters.seen_visit = shown?.dataset.visit ?? "";
    if (shown) parameters.seen_step = shown.dataset.stateName;
  }

  document.addEventListener("htmx:configRequest", (event) => {
    const kind = event.detail.elt?.dataset?.poll;
    if (kind === "execution") addPagePosition(event.detail.parameters);
    if (kind === "tasks") addTaskPosition(event.detail.parameters, event.detail.elt);
    if (kind === "list") {
      const rows = [...document.querySelectorAll("[data-running]")];
      event.detail.parameters.running = rows.map((row) => row.dataset.running).join(",");
      const entered = rows.filter((row) => row.dataset.entered);
      event.detail.parameters.entered = entered.map((row) => `${row.dataset.running}:${row.dataset.entered}`).join(",");
      const noted = [...document.querySelectorAll("tr[data-note-stamp]")];
      event.detail.parameters.notes = noted.map((row) => `${row.id.slice(1)}:${row.dataset.noteStamp}`).join(",");
    }
  });
  function addTaskPosition(parameters, poll) {
    for (const [key, value] of new URLSearchParams(location.search)) parameters[key] = value;
    parameters.seen = poll.dataset.seen;
    parameters.listed_ms = poll.dataset.from;
    parameters.shown = [...document.querySelectorAll("[data-task]")].map((row) => row.dataset.task).join(",");
  }

  // An answer about rows that the reader has meanwhile filtered or sorted is dropped: the next one brings all of it.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig.elt.dataset.poll === "execution" && askedFor !== location.search) event.detail.shouldSwap = false;
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (isPoll(event) && (paused || document.hidden)) event.preventDefault();
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!isPoll(event) || paused) return;
    if (!event.detail.successful) return;
    lostSince = "";
    setLiveState("on", "Live");
  });

  /** Say that the session has ended, where the reader is; the page keeps what was typed. */
  function showSignedOut() {
    paused = true;
    setLiveState("lost", "Not live: you are signed out. Load the page again.");
    document.getElementById("palette")?.close();
    const template = document.getElementById("signed-out");
    if (!template || document.querySelector("main > .signed-out")) return;
    const note = template.content.cloneNode(true);
    note.querySelector("a").href += `?next=${encodeURIComponent(location.pathname + location.search)}`;
    document.querySelector("main").prepend(note);
  }

  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) showSignedOut();
  });
  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => {
      if (!isPoll(event) || paused) return;
      lostSince ||= clock(new Date()).slice(11);
      const isGone = event.detail.xhr?.status === 404;
      const why = isGone ? "what this page shows was deleted" : `retrying since ${lostSince}`;
      setLiveState("lost", `Not live: ${why}`, `Not live: ${why}`);
    });
  }

  // What a page that is left still asks for ends with it: no error, which htmx would write to the console.
  const underWay = new Set();
  document.addEventListener("htmx:beforeSend", (event) => underWay.add(event.detail.xhr));
  document.addEventListener("htmx:afterRequest", (event) => underWay.delete(event.detail.xhr));
  addEventListener("pagehide", () => {
    for (const request of underWay) request.onabort = request.onerror = null;
  });

  const pollNow = () => {
    const poll = document.getElementById("poll");
    if (poll) htmx.trigger(poll, "poll-now");
  };

  function pause(button) {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.querySelector("[data-pause-word]").textContent = paused ? "Resume updates" : "Pause updates";
    setLiveState(paused ? "paused" : "on", paused ? "Paused" : "Live");
    // an answer that is under way is not shown: the next poll brings what it would have brought
    if (paused) htmx.trigger("#poll", "htmx:abort");
    else pollNow();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-pause]");
    if (button) pause(button);
  });
  document.addEventListener("visibilitychange", () => document.hidden || pollNow());
  document.addEventListener("paint", paint);
  // A choice of an iteration comes with the states inside the Map, and the lines, as it left them.
  document.addEventListener("htmx:afterSwap", (event) => {
    const told = event.detail.target?.id === "panel" && event.detail.target.querySelector("[data-repaint]");
    if (!told) return;
    const { nodes, taken } = JSON.parse(told.dataset.repaint);
    paintNodes(nodes);
    paintWays(taken);
    told.remove();
    tick();
  });
  document.addEventListener("stopped", () => {
    closeStopDialog();
    paused = false;
    pollNow();
  });
  document.addEventListener("htmx:load", (event) => {
    if (root.dataset.clock === "local") showTimes(event.detail.elt.parentNode ?? document);
  });
  document.addEventListener("past", (event) => {
    paused = true; // earlier events do not change
    document.querySelector("[data-pause]")?.remove();
    setLiveState("paused", `At event ${event.detail}`);
  });
  document.addEventListener("clock", () => showTimes());
  document.addEventListener("DOMContentLoaded", () => {
    if (root.dataset.clock === "local") showTimes();
    showRelative(Date.now() - skew);
    setInterval(tick, 1000);
  });
})();
