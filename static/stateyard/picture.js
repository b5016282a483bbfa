// Export of the graph as PNG: the browser draws the server's SVG on a canvas.
"use strict";
(() => {
  const PIXEL_RATIO = 2;
  const MAX_SIDE = 16000; // the limits of browsers: pixels of one side, and of the whole picture
  const MAX_PIXELS = 120e6;

  function scaleOf(width, height) {
    return Math.min(PIXEL_RATIO, MAX_SIDE / Math.max(width, height), Math.sqrt(MAX_PIXELS / (width * height)));
  }

  // The content security policy allows data: URLs. The SVG loads nothing from other origins, so the
  // canvas stays readable.
  async function toPng(text) {
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
    const announcement = document.getElementById("announce");
    button.disabled = true;
    try {
      const at = new URLSearchParams(location.search).get("at"); // the time machine's event
      const source = new URL(button.dataset.png, location.href);
      if (at) source.searchParams.set("at", at);
      const answer = await fetch(source);
      if (!answer.ok) throw new Error(answer.statusText);
      save(await toPng(await answer.text()), button.dataset.name);
      if (announcement) announcement.textContent = "The PNG is saved.";
    } catch {
      const words = "PNG export failed. Use SVG.";
      button.querySelector("span").textContent = words;
      if (announcement) announcement.textContent = words;
    }
    button.disabled = false;
  });
})();
