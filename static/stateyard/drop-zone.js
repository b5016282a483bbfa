// Files for an import: dropped anywhere on the page, they are chosen in the file input, which names them.
"use strict";
(() => {
  const zone = document.querySelector("[data-drop-zone]");
  if (!zone) return;
  const input = zone.querySelector("input[type=file]");

  const sizeOf = (bytes) => (bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`);

  function listFiles() {
    const rows = [...input.files].map((file) => {
      const row = document.createElement("li");
      row.textContent = `${file.name}, ${sizeOf(file.size)}`;
      return row;
    });
    zone.querySelector("[data-chosen-files]").replaceChildren(...rows);
  }

  /** Add files to those that are chosen; one replaces another of its name. */
  function choose(files) {
    const chosen = new Map([...input.files, ...files].map((file) => [file.name, file]));
    const transfer = new DataTransfer();
    for (const file of chosen.values()) transfer.items.add(file);
    input.files = transfer.files;
    listFiles();
  }

  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault(); // else the browser opens the file in place of the page
    zone.classList.add("drop-here");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) zone.classList.remove("drop-here");
  });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    zone.classList.remove("drop-here");
    choose(event.dataTransfer.files);
  });
  input.addEventListener("change", listFiles);
  listFiles(); // after Back the input may still have its files
})();
