"""Summaries of executions, by the tag stateyard:summary of their state machine."""
