"""Hot states: failures, retries, duration and cost of each state, on the graph."""
