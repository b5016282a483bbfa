"""Hot states: failures, retries, duration and cost of each state, shown on the graph."""
