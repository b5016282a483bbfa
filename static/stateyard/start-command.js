// The command that starts what the form says follows the form.
(() => {
  const place = document.getElementById("start-command");
  if (!place) return;
  const form = document.querySelector("form[data-json-form]");
  const shown = place.querySelector("pre");
  const copy = place.querySelector("[data-copy-text]");
  const words = shown.textContent.slice(0, shown.textContent.indexOf(" --state-machine-arn "));
  const LONGEST = 16384;
  const MASKED = "(masked)";

  /** Quote a word for a POSIX shell, as the server does. */
  function quote(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
  }

  function write() {
    const run = form.elements.run?.value;
    const name = form.elements.name.value.trim();
    const text = form.elements.input.value || "{}";
    const whole = text.length <= LONGEST && !text.includes(MASKED);
    const parts = ["--state-machine-arn", quote(run ? `${place.dataset.arn}:${run}` : place.dataset.arn)];
    if (name) parts.push("--name", quote(name));
    parts.push("--input", quote(whole ? text : "file://input.json"));
    const command = [words, ...parts].join(" ");
    if (shown.textContent === command) return;
    shown.textContent = command;
    copy.dataset.copyText = command;
  }

  form.addEventListener("input", write);
  form.addEventListener("change", write);
  addEventListener("pageshow", write); // Back brings typed texts back, and tells nobody
})();
