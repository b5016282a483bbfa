"""Pages of one state machine: executions, definition, start, settings."""
