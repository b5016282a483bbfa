"""Coverage: which points of a definition its executions and tests reached."""
