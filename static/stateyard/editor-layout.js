// The room of the editor: the window's height, the form and the text beside the graph, and the scale that the
// graph opens with. And what a new state machine begins with.
"use strict";
(() => {
  const FITTED = 0.7; // the smallest scale of a whole graph that is read without zooming
  const LEAST_ROOM = 500; // pixels
  const GAP = 14; // pixels below it: the padding of the page, and what rounding takes
  const narrow = matchMedia("(max-width: 1099px)");
  const edit = () => document.querySelector(".edit");

  // -- form and text ----------------------------------------------------------------------------

  function showPane(pane) {
    edit().dataset.pane = pane;
    for (const button of document.querySelectorAll("[data-show-pane]")) {
      button.setAttribute("aria-pressed", String(button.dataset.showPane === pane));
    }
  }

  const stateIsShown = () => Boolean(document.querySelector("#state-panel > header"));

  /** Show the pane that the reader's press leads to: a narrow window has one at a time. */
  function needPane(pane) {
    if (edit().dataset.pane === pane || edit().dataset.pane === "both") return;
    showPane(narrow.matches ? pane : "both");
  }

  function choosePane() {
    if (!narrow.matches) showPane("both");
    else showPane(stateIsShown() ? "form" : "text");
  }

  let shown = false; // a state or an edge is in the form
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id !== "state-panel") return;
    const now = stateIsShown();
    if (now) needPane("form");
    else if (shown && narrow.matches) showPane("text");
    shown = now;
  });

  document.addEventListener(
    "click",
    (event) => {
      const button = event.target.closest?.("[data-show-pane]");
      if (button) showPane(button.dataset.showPane);
      // the text must be in the page before it gets the focus
      if (event.target.closest?.("#problems [data-line], [data-format], [data-history]")) needPane("text");
    },
    { capture: true },
  );

  // Escape closes an open menu, and leaves the form behind it as it is.
  document.addEventListener(
    "keydown",
    (event) => {
      const menu = event.key === "Escape" && event.target.closest?.(".edit details.menu[open]");
      if (!menu) return;
      event.preventDefault();
      event.stopPropagation();
      menu.open = false;
      menu.querySelector("summary").focus();
    },
    { capture: true },
  );

  // -- the window -------------------------------------------------------------------------------

  function fitToWindow() {
    const top = edit().getBoundingClientRect().top + scrollY;
    const room = Math.max(LEAST_ROOM, Math.floor(innerHeight - top - GAP));
    edit().style.setProperty("--room", `${room}px`);
  }

  // -- the scale of the graph -------------------------------------------------------------------

  /** Show the whole graph if it is readable then; graph.js has shown its start. */
  function fitIfReadable() {
    const graph = document.querySelector("#preview [data-graph]");
    if (!graph?.clientWidth) return;
    const { width, height } = graph.querySelector("svg.flow").viewBox.baseVal;
    // the small map, which takes a part of the frame, is not needed then
    const frame = graph.closest("[data-picture]");
    const notes = graph.offsetTop;
    const scale = Math.min(frame.clientWidth / width, (frame.clientHeight - notes) / height);
    if (scale >= FITTED && scale < 1) document.querySelector('[data-zoom-by="0"]').click();
  }

  document.addEventListener("turned", fitIfReadable);

  // -- what a new state machine begins with -----------------------------------------------------

  const note = (text) => {
    document.getElementById("begin-note").textContent = text;
  };

  /** Replace the text by another definition, as one step of the undo history. */
  function beginWith(text) {
    document.dispatchEvent(new CustomEvent("begin-with", { detail: text }));
  }

  // The name that is typed already stays: the page is not left.
  async function useTemplate(form) {
    const address = new URL(form.action || location.href);
    address.search = new URLSearchParams(new FormData(form));
    address.searchParams.set("fresh", "1");
    const answer = await fetch(address);
    if (!answer.ok) return form.submit();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    beginWith(page.getElementById("text").value);
    note("The graph and the text now show the template. Undo reverts this.");
  }

  /** Take the text of the clipboard; where a browser does not give it, the next Ctrl+V replaces the text. */
  async function paste() {
    try {
      const text = await navigator.clipboard.readText();
      if (!text.trim()) return note("The clipboard has no text.");
      beginWith(text);
      note("Pasted. Undo reverts this.");
    } catch {
      needPane("text");
      const editor = ace.edit(document.querySelector(".editor.tall"));
      editor.focus();
      editor.selectAll();
      note("Press Ctrl+V now to replace the text.");
    }
  }

  // A state machine of a CloudFormation template brings its type along, and its name and tags if none are typed.
  document.addEventListener("htmx:afterSwap", (event) => {
    const taken = event.target.querySelector?.("template[data-taken]");
    if (!taken || !document.getElementById("name")) return;
    document.getElementById("type").value = taken.dataset.type;
    for (const id of ["name", "tags"]) document.getElementById(id).value ||= taken.dataset[id];
    note(`${taken.dataset.name} inserted. Undo reverts this.`);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-template-form]")) return;
    event.preventDefault();
    useTemplate(event.target);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-paste-definition]")) paste();
  });

  document.addEventListener("DOMContentLoaded", () => {
    if (!edit()) return;
    fitToWindow();
    choosePane();
    narrow.addEventListener("change", choosePane);
    addEventListener("resize", fitToWindow);
    fitIfReadable();
  });
})();
