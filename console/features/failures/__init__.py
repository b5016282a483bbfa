"""Failures by kind: failed executions in groups of equal state, error and cause."""
