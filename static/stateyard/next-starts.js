// A press on a state of the graph selects it in the first breakpoint without a state.
(() => {
  const graph = document.querySelector(".machine-graph");
  const selects = [...document.querySelectorAll("select[name=break_state]")];
  if (!graph || !selects.length) return;

  graph.addEventListener("click", (event) => {
    const node = event.target.closest("a[data-step]");
    if (!node || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const select = selects.find((each) => !each.value) ?? selects.at(-1);
    if (![...select.options].some((option) => option.value === node.dataset.step)) return;
    event.preventDefault(); // the link would lose what was typed
    select.closest("details")?.setAttribute("open", "");
    select.value = node.dataset.step;
    select.focus();
  });
})();
