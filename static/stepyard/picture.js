// A PNG of the graph: the page's own SVG, drawn on a canvas. The server needs no drawing program.
"use strict";
(() => {
  const SHARP = 2;
  const LONGEST = 16000; // what browsers draw at most: pixels of a side, and of all
  const MOST = 120e6;

  function scaleOf(width, height) {
    return Math.min(SHARP, LONGEST / Math.max(width, height), Math.sqrt(MOST / (width * height)));
  }

  // As a data: URL, which the page's policy allows; a picture with nothing from elsewhere in it
  // leaves the canvas readable.
  async function drawn(text) {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const scale = scaleOf(image.width, image.height);
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(image.width * scale);
    canvas.height = Math.ceil(image.height * scale);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("too large"))), "image/png");
    });
  }

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-png]");
    if (!button) return;
    const told = document.getElementById("announce");
    button.disabled = true;
    try {
      const at = new URLSearchParams(location.search).get("at"); // the time machine's event
      const source = new URL(button.dataset.png, location.href);
      if (at) source.searchParams.set("at", at);
      const answer = await fetch(source);
      if (!answer.ok) throw new Error(answer.statusText);
      save(await drawn(await answer.text()), button.dataset.name);
      if (told) told.textContent = "The picture is saved.";
    } catch {
      const words = "No PNG could be made: take the SVG";
      button.querySelector("span").textContent = words;
      if (told) told.textContent = words;
    }
    button.disabled = false;
  });
})();
