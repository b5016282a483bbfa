"""The pages of one state machine: executions, definition, versions, settings, logs, statistics."""
