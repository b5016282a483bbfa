"""Files of executions and graphs, and links that share a graph."""
