"""Insights: the recent executions of a state machine, by state."""
