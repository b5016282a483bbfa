"""Pause and resume single executions: a paused execution takes no step."""
