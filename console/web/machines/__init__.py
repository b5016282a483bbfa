"""Pages of one state machine: executions, definition, versions, settings, statistics."""
